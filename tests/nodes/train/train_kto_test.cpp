#include "nodes/train/train_kto.h"

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/tiny_model.h"
#include "tests/nodes/train/with_reference.h"

namespace sluice::nodes::train_kto_test {
namespace {

using testing::all_weights;
using ::testing::DoubleNear;
using ::testing::FloatNear;
using testing::floats;
using testing::group_of;
using ::testing::HasSubstr;
using testing::metric;
using testing::needs_of;
using ::testing::Pointwise;
using testing::run_node;
using ::testing::ThrowsMessage;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinySample;
using testing::with_reference;
using Vector = std::vector<double>;

at::Tensor tensor(const Vector& values) { return at::tensor(values, at::kDouble); }

Vector vector(const at::Tensor& x) {
  const at::Tensor flat = x.detach().contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

const Vector kLogRatios{0.5, -1, -1, 1.5};

at::Tensor first_two() { return tensor({1, 1, 0, 0}).gt(0); }

// What the formulas of TRL (KTOTrainer) give in PyTorch; the last with a baseline far above all samples.
TEST(KtoLoss, IsThatOfTrl) {
  const auto losses = [](const KtoLoss& loss, double baseline) {
    return vector(kto_losses(loss, tensor(kLogRatios), first_two(), baseline, 0));
  };
  EXPECT_THAT(losses({.beta = 0.5}, 0.2),
              Pointwise(DoubleNear(1e-9), Vector{0.4625701547, 0.6456563062, 0.3543436938, 0.6570104627}));
  EXPECT_THAT(losses({.beta = 0.1, .undesirable_weight = 1.33}, 0),
              Pointwise(DoubleNear(1e-9), Vector{0.4875026035, 0.5249791875, 0.6317776807, 0.7147816943}));
  EXPECT_THAT(losses({.beta = 0.5, .desirable_weight = 2, .undesirable_weight = 0.5}, 1.5),
              Pointwise(DoubleNear(1e-9), Vector{1.2449186624, 1.5545997223, 0.1113500694, 0.25}));
}

TEST(KtoLoss, HasTheBetaOfTheIteration) {
  const engine::ScheduledNumber falling({.shape = engine::ScheduleShape::kLinear, .from = 0.9, .to = 0.1, .iterations = 2}, {},
                                        false);
  EXPECT_THAT(vector(kto_losses({.beta = falling}, tensor(kLogRatios), first_two(), 0.2, 1)),
              Pointwise(DoubleNear(1e-12), vector(kto_losses({.beta = 0.5}, tensor(kLogRatios), first_two(), 0.2, 0))));
}

TEST(KtoLoss, GradientIsNumeric) {
  constexpr double kStep = 1e-6;
  const KtoLoss loss{.beta = 0.7, .desirable_weight = 1.5};
  const auto sum = [&](const Vector& ratios) {
    return kto_losses(loss, tensor(ratios), first_two(), 0.3, 0).sum().item().toDouble();
  };
  const at::Tensor ratios = tensor(kLogRatios).requires_grad_(true);
  kto_losses(loss, ratios, first_two(), 0.3, 0).sum().backward();
  for (size_t i = 0; i < kLogRatios.size(); ++i) {
    Vector up = kLogRatios, down = kLogRatios;
    up[i] += kStep, down[i] -= kStep;
    EXPECT_NEAR(vector(ratios.grad())[i], (sum(up) - sum(down)) / (2 * kStep), 1e-8);
  }
}

engine::Group labelled(const TinySample& own, const TinySample& other, float score) {
  engine::Group group = group_of({own, other});
  group.write(columns::kScore)[0] = score;
  return group;
}

// Four rows of different lengths, half of them desirable, each with a mismatched completion.
std::vector<engine::Group> rows() {
  return {labelled({{5, 17, 42, 8, 11, 90}, 3}, {{5, 17, 42, 33}, 1}, 1),
          labelled({{60, 61, 7, 7}, 2}, {{60, 61, 13, 2, 81}, 3}, 0), labelled({{71, 3, 19}, 1}, {{71, 3, 44, 9}, 2}, 1),
          labelled({{9, 8, 7, 33}, 2}, {{9, 8, 42}, 1}, 0)};
}

class TrainKtoTest : public ::testing::Test {
 protected:
  std::shared_ptr<LanguageModel> trainable(double learning_rate, uint64_t seed = 1) const {
    return tiny_model(folder_.path(), {.seed = seed, .optimizer = models::AdamWOptions{.learning_rate = learning_rate}});
  }

  static TrainKtoParams params(double beta = 0.5) {
    TrainKtoParams params;
    params.model = "actor", params.beta = beta;
    return params;
  }

  engine::MetricRow train(const std::shared_ptr<LanguageModel>& model, std::vector<engine::Group> groups,
                          std::vector<size_t> groups_per_batch = {}, int64_t pass_tokens = engine::NodeResources::kNoLimit,
                          const TrainKtoParams& params = TrainKtoTest::params()) const {
    return run_node<TrainKto>(params, {{"actor", model}}, std::move(groups), std::move(groups_per_batch), pass_tokens).metrics;
  }

  TinyFolder folder_;
};

TEST_F(TrainKtoTest, OfAPolicyThatIsItsReferenceTheLossIsAHalf) {
  const auto model = trainable(0);
  const auto metrics = train(model, with_reference(rows(), model));
  EXPECT_NEAR(metric(metrics, "policy/loss"), 0.5, 1e-6);
  EXPECT_NEAR(metric(metrics, "preference/baseline"), 0, 1e-6);
}

TEST_F(TrainKtoTest, TheBaselineIsTheMeanLogRatioOfTheMismatchedSamples) {
  // The policy for which the mean is above 0, and the one for which it is below, are each other's reference.
  const auto one = trainable(0), two = trainable(0, 2);
  double sum_of_baselines = 0;
  for (const auto& [model, reference] : {std::pair(one, two), std::pair(two, one)}) {
    const auto groups = with_reference(rows(), reference);
    const auto policy =
        floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", model}}, groups), "reference_logprobs");
    const auto base =
        floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", reference}}, groups), "reference_logprobs");
    std::vector<Vector> ratios;  // of each sample its actions': 3, 1, 2, 3, 1, 2, 2, 1
    size_t next = 0;
    for (const size_t actions : {3, 1, 2, 3, 1, 2, 2, 1}) {
      Vector& of_sample = ratios.emplace_back();
      for (size_t a = 0; a < actions; ++a, ++next) of_sample.push_back(policy[next] - base[next]);
    }
    const auto ratio = [&](size_t sample) { return std::accumulate(ratios[sample].begin(), ratios[sample].end(), 0.0); };
    const double baseline = std::max(0.0, (ratio(1) + ratio(3) + ratio(5) + ratio(7)) / 4);
    const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
    const double loss = (1 - sigmoid(0.5 * (ratio(0) - baseline)) + 1 - sigmoid(0.5 * (baseline - ratio(2))) + 1 -
                         sigmoid(0.5 * (ratio(4) - baseline)) + 1 - sigmoid(0.5 * (baseline - ratio(6)))) /
                        4;
    const auto metrics = train(model, groups);
    EXPECT_NEAR(metric(metrics, "preference/baseline"), baseline, 1e-5);
    EXPECT_NEAR(metric(metrics, "policy/loss"), loss, 1e-5);
    EXPECT_NEAR(metric(metrics, "preference/desirable_reward_mean"), 0.5 * (ratio(0) + ratio(4)) / 2, 1e-5);
    sum_of_baselines += baseline;
  }
  EXPECT_GT(sum_of_baselines, 0.01);
}

// Such as the last of the data: its mismatched completion is its own.
TEST_F(TrainKtoTest, ARowAloneHasNoBaseline) {
  const TinySample own{{5, 17, 42, 8, 11, 90}, 3};
  const auto one = trainable(0), two = trainable(0, 2);
  for (const auto& [model, reference] : {std::pair(one, two), std::pair(two, one)})
    EXPECT_EQ(metric(train(model, with_reference({labelled(own, own, 1)}, reference)), "preference/baseline"), 0);
}

// Of the other mismatched sample all actions weigh 0: the one that is left is still another row's completion.
TEST_F(TrainKtoTest, OneMismatchedSampleThatCountsIsTheBaseline) {
  const auto one = trainable(0), two = trainable(0, 2);
  double sum_of_baselines = 0;
  for (const auto& [model, reference] : {std::pair(one, two), std::pair(two, one)}) {
    auto groups = with_reference({rows()[0], rows()[1]}, reference);
    std::ranges::copy(std::vector<float>{1, 1, 1, 1}, groups[0].write(columns::kMask).begin());
    std::ranges::copy(std::vector<float>{1, 1, 0, 0, 0}, groups[1].write(columns::kMask).begin());
    const auto ratio = [&] {  // of the fourth action, the first mismatched sample
      const auto logprob = [&](const auto& of) {
        return floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", of}}, groups), "reference_logprobs")[3];
      };
      return static_cast<double>(logprob(model)) - logprob(reference);
    }();
    EXPECT_NEAR(metric(train(model, groups), "preference/baseline"), std::max(0.0, ratio), 1e-5);
    sum_of_baselines += std::max(0.0, ratio);
  }
  EXPECT_GT(sum_of_baselines, 0.01);
}

TEST_F(TrainKtoTest, NeitherMicroBatchesNorPassesChangeTheStep) {
  const auto together = trainable(1e-3, 2), apart = trainable(1e-3, 2), reference = trainable(0);
  const auto groups = with_reference(rows(), reference);
  const auto of_together = train(together, groups), of_apart = train(apart, groups, {1, 2, 1}, 7);
  EXPECT_EQ(metric(of_apart, "preference/baseline"), metric(of_together, "preference/baseline"));
  EXPECT_NEAR(metric(of_apart, "policy/loss"), metric(of_together, "policy/loss"), 1e-7);
  EXPECT_NEAR(metric(of_apart, "policy/grad_norm"), metric(of_together, "policy/grad_norm"),
              1e-5 * metric(of_together, "policy/grad_norm"));
  EXPECT_THAT(all_weights(*apart), Pointwise(FloatNear(1e-5f), all_weights(*together)));
}

TEST_F(TrainKtoTest, StepsRaiseWhatIsDesirableAndLowerTheRest) {
  const auto model = trainable(1e-3);
  const auto groups = with_reference(rows(), model);
  for (int step = 0; step < 10; ++step) train(model, groups);
  const auto metrics = train(model, groups);
  EXPECT_GT(metric(metrics, "preference/desirable_reward_mean"), metric(metrics, "preference/undesirable_reward_mean") + 0.3);
  EXPECT_EQ(metric(metrics, "preference/accuracy"), 1);
}

TEST_F(TrainKtoTest, AWeightOfZeroLeavesThatKindOut) {
  const auto model = trainable(0, 2);
  const auto groups = with_reference(rows(), trainable(0));
  TrainKtoParams both = params(), desirable = params(), undesirable = params();
  desirable.undesirable_weight = 0, undesirable.desirable_weight = 0;
  const auto loss = [&](const TrainKtoParams& of) { return metric(train(model, groups, {}, 1000, of), "policy/loss"); };
  EXPECT_NEAR(loss(desirable) + loss(undesirable), loss(both), 1e-6);
}

TEST_F(TrainKtoTest, WhatHasNoWeightCountsNowhere) {
  const auto masked = trainable(1e-3, 2), without = trainable(1e-3, 2), reference = trainable(0);
  auto groups = with_reference(rows(), reference);
  const std::vector<engine::Group> left(groups.begin() + 1, groups.end());
  for (engine::Group& group : groups) std::ranges::fill(group.write(columns::kMask), &group == &groups.front() ? 0.0F : 1.0F);
  const auto of_masked = train(masked, groups), of_without = train(without, left);
  EXPECT_NEAR(metric(of_masked, "preference/baseline"), metric(of_without, "preference/baseline"), 1e-7);
  EXPECT_THAT(all_weights(*masked), Pointwise(FloatNear(1e-5f), all_weights(*without)));
}

TEST_F(TrainKtoTest, WithoutSamplesThereIsNoStep) {
  const auto model = trainable(1e-2);
  const auto before = all_weights(*model);
  std::vector<engine::Group> none{group_of({})};
  none[0].write(columns::kScore);
  train(model, with_reference(none, model));
  EXPECT_EQ(all_weights(*model), before);
}

TEST_F(TrainKtoTest, AGroupWithoutAMismatchedSampleIsAnError) {
  const auto model = trainable(0);
  engine::Group alone = group_of({{{5, 17, 42}, 1}});
  alone.write(columns::kScore)[0] = 1;
  EXPECT_THAT(
      [&] {
        train(model, with_reference({rows()[0], alone}, model));
      },
      ThrowsMessage<UserError>(HasSubstr("group 1 has one sample, and none with another completion")));
}

TEST_F(TrainKtoTest, IsABarrierOfTwoSteps) {
  const auto needs = needs_of<TrainKto>(params());
  EXPECT_EQ(needs.scope, engine::Scope::kIteration);
  EXPECT_EQ(needs.steps, 2);
}

}  // namespace
}  // namespace sluice::nodes::train_kto_test
