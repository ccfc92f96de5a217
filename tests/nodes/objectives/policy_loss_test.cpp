// What all policy objectives have in common: aggregation, mask, importance weights, KL and entropy terms.
#include "nodes/objectives/policy_loss.h"

#include <ATen/ops/cat.h>
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <random>

#include "nodes/objectives/cispo.h"
#include "nodes/objectives/gspo.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/sapo.h"
#include "tests/nodes/objectives/objective_support.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes {
namespace {

using testing::expect_gradient_is_numeric;
using testing::expect_near;
using testing::gradient;
using testing::Loss;
using testing::loss_of;
using testing::metric;
using testing::one_sample;
using testing::tensor;
using testing::Vector;
using testing::vector_of;

// Every objective with the shared parameters that `set` makes.
std::vector<std::pair<std::string, std::shared_ptr<Objective>>> all_objectives(
    const std::function<void(PolicyLossParams&)>& set) {
  std::vector<std::pair<std::string, std::shared_ptr<Objective>>> all;
  PpoClipParams ppo;
  GspoParams gspo;
  CispoParams cispo;
  SapoParams sapo;
  ReinforceParams reinforce;
  ppo.dual_clip = 2;
  gspo.clip_low = gspo.clip_high = 0.05;
  for (PolicyLossParams* params : std::initializer_list<PolicyLossParams*>{&ppo, &gspo, &cispo, &sapo, &reinforce}) set(*params);
  all.emplace_back("ppo_clip", std::make_shared<PpoClip>(ppo));
  all.emplace_back("gspo", std::make_shared<Gspo>(gspo));
  all.emplace_back("cispo", std::make_shared<Cispo>(cispo));
  all.emplace_back("sapo", std::make_shared<Sapo>(sapo));
  all.emplace_back("reinforce", std::make_shared<Reinforce>(reinforce));
  return all;
}

struct RandomSample {
  Vector logprobs, old_logprobs, rollout_logprobs, reference_logprobs, entropy, advantages, mask;
};

RandomSample random_sample(std::mt19937& random, size_t actions) {
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> third(0, 2);
  RandomSample sample;
  for (size_t i = 0; i < actions; ++i) {
    sample.logprobs.push_back(-1 + 0.3 * normal(random));
    sample.old_logprobs.push_back(sample.logprobs.back() + 0.3 * normal(random));
    sample.rollout_logprobs.push_back(sample.old_logprobs.back() + 0.5 * normal(random));
    sample.reference_logprobs.push_back(sample.logprobs.back() + 0.5 * normal(random));
    sample.entropy.push_back(std::abs(normal(random)));
    sample.advantages.push_back(normal(random));
    sample.mask.push_back(third(random) * 0.5);  // 0, 0.5 or 1
  }
  return sample;
}

// The samples `order` of `samples` as one micro-batch; logprobs[A] and entropy[A] carry a gradient.
ObjectiveInputs packed(const std::vector<RandomSample>& samples, const std::vector<size_t>& order) {
  RandomSample all;
  std::vector<int64_t> offsets{0};
  const auto append = [](Vector& to, const Vector& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const size_t s : order) {
    append(all.logprobs, samples[s].logprobs), append(all.old_logprobs, samples[s].old_logprobs);
    append(all.rollout_logprobs, samples[s].rollout_logprobs), append(all.reference_logprobs, samples[s].reference_logprobs);
    append(all.entropy, samples[s].entropy), append(all.advantages, samples[s].advantages), append(all.mask, samples[s].mask);
    offsets.push_back(static_cast<int64_t>(all.logprobs.size()));
  }
  return {.logprobs = tensor(all.logprobs).requires_grad_(true),
          .old_logprobs = tensor(all.old_logprobs),
          .rollout_logprobs = tensor(all.rollout_logprobs),
          .reference_logprobs = tensor(all.reference_logprobs),
          .entropy = tensor(all.entropy).requires_grad_(true),
          .advantages = tensor(all.advantages),
          .mask = tensor(all.mask),
          .action_offsets = offsets};
}

struct Total {
  double loss_sum = 0, count = 0;
  std::vector<Vector> gradients;  // of the log-probabilities, a sample each
};

Total total_of(const Objective& objective, const std::vector<RandomSample>& samples,
               const std::vector<std::vector<size_t>>& batches) {
  Total total;
  total.gradients.resize(samples.size());
  for (const auto& batch : batches) {
    const ObjectiveInputs inputs = packed(samples, batch);
    const ObjectiveResult result = objective.compute(inputs);
    result.loss_sum.backward();
    total.loss_sum += result.loss_sum.item().toDouble();
    total.count += result.count;
    const Vector grad = vector_of(inputs.logprobs.grad());
    for (size_t i = 0; i < batch.size(); ++i)
      total.gradients[batch[i]].assign(grad.begin() + inputs.action_offsets[i], grad.begin() + inputs.action_offsets[i + 1]);
  }
  return total;
}

void use_everything(PolicyLossParams& params) {
  params.sequence_constant = params.aggregation == Aggregation::kSequenceSum ? 7 : 1;
  params.kl_coefficient = 0.3;
  params.entropy_coefficient = 0.2;
}

// From 0.4 in iteration 0 to 0.2 in iteration 4.
engine::ScheduledNumber halved() {
  return {{.shape = engine::ScheduleShape::kLinear, .from = 0.4, .to = 0.2, .iterations = 4}, {}, false};
}

TEST(PolicyLoss, HasTheScheduledNumbersOfTheIterationOfItsSamples) {
  std::mt19937 random(6);
  const std::vector<RandomSample> samples{random_sample(random, 4), random_sample(random, 3)};
  const auto loss_in = [&](const PpoClipParams& params, int64_t iteration) {
    ObjectiveInputs inputs = packed(samples, {0, 1});
    inputs.iteration = iteration;
    return PpoClip(params).compute(inputs).loss_sum.item().toDouble();
  };
  const auto params_with = [](const engine::ScheduledNumber& number) {
    PpoClipParams params;
    params.kl_coefficient = params.entropy_coefficient = params.clip_low = params.clip_high = number;
    return params;
  };
  for (const auto& [iteration, number] : {std::pair(0, 0.4), std::pair(1, 0.35), std::pair(2, 0.3), std::pair(9, 0.2)})
    EXPECT_NEAR(loss_in(params_with(halved()), iteration), loss_in(params_with(number), 0), 1e-12) << iteration;
  EXPECT_NE(loss_in(params_with(0.4), 0), loss_in(params_with(0.2), 0));
}

// The loss is a sum and a count over samples: how they are packed, and in which order, changes nothing but rounding.
TEST(PolicyLoss, DoesNotDependOnHowSamplesArePacked) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<RandomSample> samples;
    for (int s = 0; s < 7; ++s) samples.push_back(random_sample(random, std::uniform_int_distribution<size_t>(0, 6)(random)));
    std::vector<size_t> together(samples.size());
    std::iota(together.begin(), together.end(), size_t{0});
    std::vector<std::vector<size_t>> apart;
    std::vector<size_t> shuffled = together;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    for (const size_t s : shuffled) {
      if (apart.empty() || std::uniform_int_distribution<int>(0, 1)(random) == 0) apart.emplace_back();
      apart.back().push_back(s);
    }
    for (const Aggregation aggregation : {Aggregation::kTokenMean, Aggregation::kSampleMean, Aggregation::kSequenceSum}) {
      for (const Correction correction : {Correction::kNone, Correction::kTruncate, Correction::kMask}) {
        for (const CorrectionLevel level : {CorrectionLevel::kToken, CorrectionLevel::kSequence, CorrectionLevel::kGeometric}) {
          const auto set = [&](PolicyLossParams& params) {
            params.aggregation = aggregation, params.correction = correction, params.correction_level = level;
            params.correction_min = 0.5;
            use_everything(params);
          };
          for (const auto& [name, objective] : all_objectives(set)) {
            const Total one = total_of(*objective, samples, {together}), many = total_of(*objective, samples, apart);
            EXPECT_NEAR(one.loss_sum, many.loss_sum, 1e-9) << name;
            EXPECT_NEAR(one.count, many.count, 1e-9) << name;
            for (size_t s = 0; s < samples.size(); ++s) expect_near(one.gradients[s], many.gradients[s], 1e-10);
          }
        }
      }
    }
  }
}

// Parts of the loss that are constants by definition (importance weights, CISPO's ratio, straight-through values) are left out
// here.
TEST(PolicyLoss, GradientsAgreeWithDifferences) {
  std::mt19937 random(7);
  const RandomSample a = random_sample(random, 5), b = random_sample(random, 3);
  for (const Aggregation aggregation : {Aggregation::kTokenMean, Aggregation::kSampleMean, Aggregation::kSequenceSum}) {
    for (const KlEstimator estimator : {KlEstimator::kK1, KlEstimator::kK2, KlEstimator::kK3, KlEstimator::kAbs}) {
      const auto set = [&](PolicyLossParams& params) {
        params.aggregation = aggregation, params.kl_estimator = estimator, use_everything(params);
      };
      for (const auto& [name, objective] : all_objectives(set)) {
        if (name == "cispo") continue;
        SCOPED_TRACE(name);
        const ObjectiveInputs inputs = packed({a, b}, {0, 1});
        const Loss loss = [&, inputs](const at::Tensor& logprobs) {
          ObjectiveInputs moved = inputs;
          moved.logprobs = logprobs;
          return objective->compute(moved);
        };
        expect_gradient_is_numeric(loss, vector_of(inputs.logprobs), 1e-5);
      }
    }
  }
}

Vector masked_case(const Json& rows, const Json& mask, Vector& weights, std::vector<int64_t>& offsets) {
  Vector all;
  offsets = {0};
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t i = 0; i < rows[row].size(); ++i) all.push_back(rows[row][i]), weights.push_back(mask[row][i]);
    offsets.push_back(static_cast<int64_t>(all.size()));
  }
  return all;
}

// With REINFORCE and log-probabilities of -1 the loss of an action is its advantage.
double aggregated(const char* id, Aggregation aggregation, double* count) {
  const auto entry = reference_case(id);
  if (!entry) return std::nan("");
  ReinforceParams params;
  params.aggregation = aggregation;
  Vector mask;
  ObjectiveInputs inputs;
  inputs.advantages = tensor(masked_case((*entry)["loss"], (*entry)["mask"], mask, inputs.action_offsets));
  inputs.mask = tensor(mask);
  inputs.logprobs = tensor(Vector(mask.size(), -1.0));
  const ObjectiveResult result = Reinforce(params).compute(inputs);
  *count = result.count;
  return loss_of(result);
}

TEST(PolicyLoss, TokenMeanAgreesWithOpenRlhf) {
  double count = 0;
  const double loss = aggregated("token_mean_dp2", Aggregation::kTokenMean, &count);
  if (std::isnan(loss)) GTEST_SKIP() << "no test data";
  EXPECT_NEAR(loss, 3.6666667, 1e-6);
}

TEST(PolicyLoss, SampleWithoutActionsThatCountIsNoSample) {
  double count = 0;
  const double loss = aggregated("fully_masked_seq_excluded", Aggregation::kSampleMean, &count);
  if (std::isnan(loss)) GTEST_SKIP() << "no test data";
  EXPECT_NEAR(loss, 2.0, 1e-12);
  EXPECT_EQ(count, 1);
}

// Two samples of 1 and 3 actions with losses 4 and 1, 1, 1.
TEST(PolicyLoss, AggregationsDifferInWhatAnActionCounts) {
  const auto loss = [](Aggregation aggregation, double constant) {
    ReinforceParams params;
    params.aggregation = aggregation, params.sequence_constant = constant;
    ObjectiveInputs inputs = one_sample(tensor({-1, -1, -1, -1}), {}, {4, 1, 1, 1});
    inputs.old_logprobs = at::Tensor(), inputs.action_offsets = {0, 1, 4};
    return loss_of(Reinforce(params).compute(inputs));
  };
  EXPECT_NEAR(loss(Aggregation::kTokenMean, 1), 7.0 / 4, 1e-12);
  EXPECT_NEAR(loss(Aggregation::kSampleMean, 1), 5.0 / 2, 1e-12);
  EXPECT_NEAR(loss(Aggregation::kSequenceSum, 1), 7.0 / 2, 1e-12);
  EXPECT_NEAR(loss(Aggregation::kSequenceSum, 10), 0.7 / 2, 1e-12);
}

TEST(PolicyLoss, WhatTheMaskExcludesMayBeNan) {
  for (const auto& [name, objective] : all_objectives([](PolicyLossParams& params) { use_everything(params); })) {
    SCOPED_TRACE(name);
    std::mt19937 random(3);
    RandomSample sample = random_sample(random, 4);
    sample.mask = {1, 0, 1, 1};
    const ObjectiveResult whole = objective->compute(packed({sample}, {0}));
    for (Vector* column : {&sample.logprobs, &sample.old_logprobs, &sample.rollout_logprobs, &sample.reference_logprobs,
                           &sample.entropy, &sample.advantages})
      (*column)[1] = std::nan("");
    const ObjectiveInputs inputs = packed({sample}, {0});
    const ObjectiveResult result = objective->compute(inputs);
    result.loss_sum.backward();
    EXPECT_EQ(result.loss_sum.item().toDouble(), whole.loss_sum.item().toDouble());
    const Vector grad = vector_of(inputs.logprobs.grad());
    EXPECT_EQ(grad[1], 0);
    EXPECT_TRUE(std::isfinite(grad[0]) && std::isfinite(grad[2]) && std::isfinite(grad[3]));
  }
}

TEST(PolicyLoss, NothingThatCountsLosesNothing) {
  for (const auto& [name, objective] : all_objectives([](PolicyLossParams& params) { use_everything(params); })) {
    std::mt19937 random(3);
    RandomSample sample = random_sample(random, 2);
    sample.mask = {0, 0};
    for (const auto& samples : {std::vector{sample}, std::vector{RandomSample{}}, std::vector<RandomSample>{}}) {
      std::vector<size_t> order(samples.size());
      const ObjectiveInputs inputs = packed(samples, order);
      const ObjectiveResult result = objective->compute(inputs);
      result.loss_sum.backward();
      EXPECT_EQ(result.count, 0) << name;
      EXPECT_EQ(result.loss_sum.item().toDouble(), 0) << name;
      EXPECT_TRUE(result.metrics.empty()) << name;
    }
  }
}

// exp(old - rollout): 1, 4, 0.25; their product 1, so is their geometric mean.
Vector importance(Correction correction, CorrectionLevel level, double low, double high, std::vector<int64_t> offsets = {0, 3}) {
  ReinforceParams params;
  params.correction = correction, params.correction_level = level, params.correction_min = low, params.correction_max = high;
  const Loss loss = [&](const at::Tensor& logprobs) {
    ObjectiveInputs inputs = one_sample(logprobs, {-1, -1, -1}, {-1, -1, -1});
    inputs.rollout_logprobs = tensor({-1, -1 - std::log(4), -1 + std::log(4)});
    inputs.action_offsets = offsets;
    return Reinforce(params).compute(inputs);
  };
  return gradient(loss, {-1, -1, -1});
}

TEST(ImportanceCorrection, TruncatesEachWeight) {
  expect_near(importance(Correction::kTruncate, CorrectionLevel::kToken, 0, 2), {1, 2, 0.25});
  expect_near(importance(Correction::kTruncate, CorrectionLevel::kToken, 0.5, 2), {1, 2, 0.5});
}

TEST(ImportanceCorrection, MasksWhatIsOutside) {
  expect_near(importance(Correction::kMask, CorrectionLevel::kToken, 0, 2), {1, 0, 0.25});
  expect_near(importance(Correction::kMask, CorrectionLevel::kToken, 0.5, 8), {1, 4, 0});
}

TEST(ImportanceCorrection, WeightOfASequenceIsOfAllItsActions) {
  expect_near(importance(Correction::kTruncate, CorrectionLevel::kSequence, 0, 10), {1, 1, 1});
  expect_near(importance(Correction::kTruncate, CorrectionLevel::kSequence, 0, 10, {0, 2, 3}), {4, 4, 0.25});
  expect_near(importance(Correction::kTruncate, CorrectionLevel::kGeometric, 0, 10, {0, 2, 3}), {2, 2, 0.25});
  expect_near(importance(Correction::kMask, CorrectionLevel::kSequence, 0.5, 10, {0, 2, 3}), {4, 4, 0});
}

// Decoupled PPO: the ratio is taken from the proximal policy, the weight leads from the behaviour policy to it.
TEST(ImportanceCorrection, DecoupledObjectiveIsWeightTimesClippedSurrogate) {
  PpoClipParams params;
  params.correction = Correction::kTruncate, params.correction_max = 100;
  ObjectiveInputs inputs = one_sample(tensor({std::log(1.5), std::log(0.5)}), {0, 0}, {2, 2});
  inputs.rollout_logprobs = tensor({-std::log(3), std::log(2)});
  const ObjectiveResult result = PpoClip(params).compute(inputs);
  EXPECT_NEAR(result.loss_sum.item().toDouble(), -(3 * 1.2 * 2 + 0.5 * 0.5 * 2), 1e-12);
  EXPECT_NEAR(metric(result, "policy/importance_weight_mean"), (3 + 0.5) / 2, 1e-12);
}

TEST(KlInTheLoss, AgreesWithNemoRl) {
  const auto entry = reference_case("kl_penalty_loss");
  if (!entry) GTEST_SKIP() << "no test data";
  PpoClipParams params;
  params.kl_coefficient = (*entry)["beta"].get<double>();
  const Vector logprobs = (*entry)["curr"];
  ObjectiveInputs inputs = one_sample(tensor(logprobs), logprobs, Vector(logprobs.size(), 0.0));
  inputs.reference_logprobs = tensor((*entry)["ref"]);
  const ObjectiveResult result = PpoClip(params).compute(inputs);
  EXPECT_NEAR(loss_of(result), (*entry)["expect"]["loss"], 1e-4);
  EXPECT_NEAR(metric(result, "policy/kl_loss_mean"), (*entry)["expect"]["mean"], 1e-3);
}

TEST(KlInTheLoss, ClampsBoundTheLogRatioAndTheEstimate) {
  const auto kl = [](std::optional<double> input, std::optional<double> output) {
    ReinforceParams params;
    params.kl_coefficient = 1, params.kl_clamp_input = input, params.kl_clamp_output = output;
    ObjectiveInputs inputs = one_sample(tensor({-10}), {}, {0});
    inputs.old_logprobs = at::Tensor(), inputs.reference_logprobs = tensor({0});
    return loss_of(Reinforce(params).compute(inputs));
  };
  EXPECT_NEAR(kl({}, {}), std::exp(10.0) - 1 - 10, 1e-6);
  EXPECT_NEAR(kl(2, {}), std::exp(2.0) - 1 - 2, 1e-12);
  EXPECT_NEAR(kl({}, 5), 5, 1e-12);
}

// The gradient of k1 is that of the log-probability, whatever the divergence; straight through it is the log ratio, that of k2.
TEST(KlInTheLoss, StraightThroughHasTheGradientOfK2) {
  const auto kl = [](KlGradient gradient) {
    return [=](const at::Tensor& logprobs) {
      ReinforceParams params;
      params.kl_coefficient = 1, params.kl_estimator = KlEstimator::kK1, params.kl_gradient = gradient;
      ObjectiveInputs inputs = one_sample(logprobs, {}, {0, 0});
      inputs.old_logprobs = at::Tensor(), inputs.reference_logprobs = tensor({-1, -1});
      return Reinforce(params).compute(inputs);
    };
  };
  expect_near(gradient(kl(KlGradient::kDirect), {-3, 0.5}), {1, 1});
  expect_near(gradient(kl(KlGradient::kStraightThrough), {-3, 0.5}), {-2, 1.5});
  EXPECT_NEAR(loss_of(kl(KlGradient::kStraightThrough)(tensor({-3, 0.5}))), (-2 + 1.5) / 2, 1e-12);
}

TEST(EntropyBonus, IsSubtracted) {
  ReinforceParams params;
  params.entropy_coefficient = 0.5;
  ObjectiveInputs inputs = one_sample(tensor({-1, -1}), {}, {0, 0});
  inputs.old_logprobs = at::Tensor(), inputs.entropy = tensor({2, 4}).requires_grad_(true);
  const ObjectiveResult result = Reinforce(params).compute(inputs);
  result.loss_sum.backward();
  EXPECT_NEAR(loss_of(result), -1.5, 1e-12);
  expect_near(vector_of(inputs.entropy.grad()), {-0.5, -0.5});
}

}  // namespace
}  // namespace sluice::nodes
