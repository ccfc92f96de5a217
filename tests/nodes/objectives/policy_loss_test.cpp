// What all policy objectives have in common: aggregation, mask, importance weights, KL and entropy terms.
#include "nodes/objectives/policy_loss.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <memory>
#include <random>

#include "base/error.h"
#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "tests/nodes/objectives/random_samples.h"
#include "tests/nodes/objectives/registered_objectives.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::policy_loss_test {
namespace {

using testing::expect_near;
using testing::gradient;
using testing::Loss;
using testing::loss_of;
using testing::made_objective;
using testing::metric;
using testing::one_sample;
using testing::packed;
using testing::random_sample;
using testing::RandomSample;
using testing::registered;
using testing::tensor;
using testing::Vector;
using testing::vector_of;

// Every objective of the registry, with both terms beside the surrogate.
std::vector<std::pair<std::string, std::shared_ptr<const Objective>>> all_objectives() {
  std::vector<std::pair<std::string, std::shared_ptr<const Objective>>> all;
  for (const engine::ComponentType* type : registered<Objective>())
    all.emplace_back(type->type, made_objective<Objective>(type->type, "kl_coefficient = 0.3\nentropy_coefficient = 0.2\n"));
  return all;
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
  for (const auto& [name, objective] : all_objectives()) {
    SCOPED_TRACE(name);
    std::mt19937 random(3);
    RandomSample sample = random_sample(random, 4);
    sample.mask = {1, 0, 1, 1};
    const auto inputs_of = [&objective](const RandomSample& sample) {
      ObjectiveInputs inputs = packed({sample}, {0});
      inputs.step = testing::found_in(*objective, {sample}, at::kDouble);
      return inputs;
    };
    const ObjectiveResult whole = objective->compute(inputs_of(sample));
    for (Vector* column : {&sample.logprobs, &sample.old_logprobs, &sample.rollout_logprobs, &sample.reference_logprobs,
                           &sample.entropy, &sample.advantages})
      (*column)[1] = std::nan("");
    const ObjectiveInputs inputs = inputs_of(sample);
    const ObjectiveResult result = objective->compute(inputs);
    result.loss_sum.backward();
    EXPECT_EQ(result.loss_sum.item().toDouble(), whole.loss_sum.item().toDouble());
    const Vector grad = vector_of(inputs.logprobs.grad());
    EXPECT_EQ(grad[1], 0);
    EXPECT_TRUE(std::isfinite(grad[0]) && std::isfinite(grad[2]) && std::isfinite(grad[3]));
  }
}

TEST(PolicyLoss, NothingThatCountsLosesNothing) {
  for (const auto& [name, objective] : all_objectives()) {
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

// k1 = log(rollout / old): 0, -log 4, log 4; k3 = exp(-k1) - 1 + k1: 0, 1.61, 0.64.
Vector with_rejection(Rejection rejection, KlEstimator estimator, std::optional<double> low, double high,
                      std::vector<int64_t> offsets = {0, 3}, Correction correction = Correction::kNone) {
  ReinforceParams params;
  params.rejection = rejection, params.rejection_estimator = estimator;
  params.rejection_min = low, params.rejection_max = high, params.correction = correction;
  const Loss loss = [&](const at::Tensor& logprobs) {
    ObjectiveInputs inputs = one_sample(logprobs, {-1, -1, -1}, {-1, -1, -1});
    inputs.rollout_logprobs = tensor({-1, -1 - std::log(4), -1 + std::log(4)});
    inputs.action_offsets = offsets;
    return Reinforce(params).compute(inputs);
  };
  return gradient(loss, {-1, -1, -1});
}

TEST(Rejection, ActionsByTheirEstimate) {
  expect_near(with_rejection(Rejection::kToken, KlEstimator::kK1, {}, 1), {1, 0, 0});
  expect_near(with_rejection(Rejection::kToken, KlEstimator::kK1, {}, 2), {1, 1, 1});
  expect_near(with_rejection(Rejection::kToken, KlEstimator::kK1, -2, 1), {1, 1, 0});
  expect_near(with_rejection(Rejection::kToken, KlEstimator::kK2, {}, 0.9), {1, 0, 0});
  expect_near(with_rejection(Rejection::kToken, KlEstimator::kK3, {}, 1), {1, 0, 1});
}

TEST(Rejection, WholeSamplesBySumMeanOrAnyOfTheirActions) {
  const std::vector<int64_t> two{0, 2, 3};
  expect_near(with_rejection(Rejection::kSequenceSum, KlEstimator::kK1, {}, 1), {1, 1, 1});
  expect_near(with_rejection(Rejection::kSequenceSum, KlEstimator::kK1, {}, 1, two), {0, 0, 0});
  expect_near(with_rejection(Rejection::kSequenceSum, KlEstimator::kK3, {}, 1, two), {0, 0, 1});
  expect_near(with_rejection(Rejection::kSequenceMean, KlEstimator::kK3, {}, 1, two), {1, 1, 1});
  expect_near(with_rejection(Rejection::kSequenceMax, KlEstimator::kK3, {}, 1, two), {0, 0, 1});
  expect_near(with_rejection(Rejection::kSequenceMax, KlEstimator::kK1, -2, 1, two), {1, 1, 0});
}

// The two are independent: what is not rejected has its weight.
TEST(Rejection, OthersKeepTheirWeight) {
  const auto both = with_rejection(Rejection::kToken, KlEstimator::kK1, -2, 1, {0, 3}, Correction::kTruncate);
  expect_near(both, {1, 2, 0});
}

TEST(Rejection, WhatIsRejectedStillCountsInTheMeanAndHasItsKl) {
  ReinforceParams params;
  params.rejection = Rejection::kToken, params.rejection_max = 0.1, params.kl_coefficient = 1;
  ObjectiveInputs inputs = one_sample(tensor({-1, -1}), {-1, -1}, {3, 3});
  inputs.rollout_logprobs = tensor({-2, -1}), inputs.reference_logprobs = tensor({-1 - std::log(2), -1});
  const ObjectiveResult result = Reinforce(params).compute(inputs);
  EXPECT_EQ(result.count, 2);
  EXPECT_NEAR(result.loss_sum.item().toDouble(), 3 + 0.5 - 1 + std::log(2), 1e-12);
  EXPECT_EQ(metric(result, "policy/rejected"), 0.5);
  EXPECT_NEAR(metric(result, "policy/rejection_estimate_max"), std::exp(1) - 2, 1e-12);
}

TEST(Rejection, NeedsABoundAndReportsWhatHasNoEffect) {
  const auto reported = [](const std::string& keys) {
    Problems problems;
    testing::bound_objective<Objective>("reinforce", keys, problems);
    return render(problems);
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(reported("rejection = \"token\""), HasSubstr("rejection needs a bound"));
  EXPECT_THAT(reported("rejection_max = 0.1"), HasSubstr("rejection_max has no effect while rejection is \"none\""));
  EXPECT_THAT(reported("rejection = \"token\"\nrejection_max = 0.1\nrejection_min = -0.1"), HasSubstr("only k1"));
  EXPECT_THAT(reported("rejection = \"token\"\nrejection_estimator = \"k1\"\nrejection_max = 0.1\nrejection_min = 0.2"),
              HasSubstr("rejection_min is above rejection_max"));
  EXPECT_EQ(reported("rejection = \"token\"\nrejection_estimator = \"k1\"\nrejection_max = 0.1\nrejection_min = 0.05"), "");
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

// Of log-probabilities so far apart that their ratio is no float32 it is 0, and never of the other sign.
TEST(KlInTheLoss, K3NeverDrivesThePolicyAway) {
  const auto kl = [](const at::Tensor& logprobs) {
    ReinforceParams params;
    params.kl_coefficient = 1, params.kl_estimator = KlEstimator::kK3;
    ObjectiveInputs inputs = one_sample(logprobs, {}, {0, 0});
    inputs.old_logprobs = at::Tensor(), inputs.reference_logprobs = tensor({-1, -1});
    return Reinforce(params).compute(inputs);
  };
  expect_near(gradient(kl, {-500, -1.5}), {0, 1 - std::exp(0.5)});
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

// Of a plugin, whose losses have a shape of their own.
class OddShape final : public PolicyObjective {
 public:
  explicit OddShape(std::function<at::Tensor(const at::Tensor&)> shape)
      : PolicyObjective(PolicyLossParams{}), shape_(std::move(shape)) {}

 private:
  bool takes_ratio() const override { return false; }
  Surrogate surrogate(const PolicyTerms& terms) const override { return {shape_(terms.logprobs.neg()), {}}; }

  const std::function<at::Tensor(const at::Tensor&)> shape_;
};

// They were broadcast, and what was trained on was something else.
TEST(PolicyLoss, RefusesLossesThatAreNotOneForEachAction) {
  ObjectiveInputs inputs = one_sample(tensor({-1, -2}), {}, {0, 0});
  inputs.old_logprobs = at::Tensor();
  const auto refused = [&](const std::function<at::Tensor(const at::Tensor&)>& shape) {
    try {
      OddShape(shape).compute(inputs);
    } catch (const UserError& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused([](const at::Tensor& x) { return x; }), "accepted");
  EXPECT_EQ(refused([](const at::Tensor& x) { return x.unsqueeze(1); }),
            "the objective gives a tensor of shape [2, 1] for 2 losses, one for each action");
  EXPECT_EQ(refused([](const at::Tensor& x) { return x.sum(); }),
            "the objective gives a tensor of shape [] for 2 losses, one for each action");
  EXPECT_EQ(refused([](const at::Tensor& x) { return x.slice(0, 0, 0); }),
            "the objective gives a tensor of shape [0] for 2 losses, one for each action");
  EXPECT_EQ(refused([](const at::Tensor&) { return at::Tensor(); }),
            "the objective gives nothing for 2 losses, one for each action");
}

}  // namespace
}  // namespace sluice::nodes::policy_loss_test
