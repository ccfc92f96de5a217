#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>

#include "nodes/objectives/ppo_clip.h"
#include "nodes/objectives/reinforce.h"
#include "nodes/objectives/value_clip.h"
#include "nodes/objectives/value_mse.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes {
namespace {

using Vector = std::vector<double>;
using Loss = std::function<ObjectiveResult(const at::Tensor&)>;

at::Tensor tensor(const Vector& values) { return at::tensor(values, at::kDouble); }

Vector gradient(const Loss& loss, const Vector& x) {
  at::Tensor input = tensor(x).requires_grad_(true);
  loss(input).loss_sum.backward();
  const at::Tensor grad = input.grad();
  return {grad.const_data_ptr<double>(), grad.const_data_ptr<double>() + grad.numel()};
}

// Central differences; `x` must stay clear of the kinks.
void expect_gradient_is_numeric(const Loss& loss, const Vector& x) {
  constexpr double kStep = 1e-6;
  const Vector analytic = gradient(loss, x);
  for (size_t i = 0; i < x.size(); ++i) {
    Vector up = x, down = x;
    up[i] += kStep, down[i] -= kStep;
    const double numeric =
        (loss(tensor(up)).loss_sum.item().toDouble() - loss(tensor(down)).loss_sum.item().toDouble()) / (2 * kStep);
    EXPECT_NEAR(analytic[i], numeric, 1e-6 * std::max(1.0, std::abs(numeric))) << "entry " << i;
  }
}

Loss ppo(const PpoClipParams& params, const Vector& old_logprobs, const Vector& advantages) {
  return [=](const at::Tensor& logprobs) {
    return PpoClip(params).compute(
        {.logprobs = logprobs, .old_logprobs = tensor(old_logprobs), .advantages = tensor(advantages)});
  };
}

Loss value_clip(double clip, const Vector& old_values, const Vector& returns) {
  return [=](const at::Tensor& values) {
    return ValueClip({.clip = clip}).compute({.values = values, .old_values = tensor(old_values), .returns = tensor(returns)});
  };
}

double loss_of(const ObjectiveResult& result) { return result.loss_sum.item().toDouble() / result.count; }

double metric(const ObjectiveResult& result, const std::string& name) {
  for (const ObjectiveMetric& metric : result.metrics) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

void expect_agrees_with_nemo_rl(const Json& entry) {
  const PpoClipParams params{
      .clip_low = entry["clip"][0], .clip_high = entry["clip"][1], .dual_clip = entry.value("clip_c", 0.0)};
  const auto result = ppo(params, entry["prev"], entry["adv"])(tensor(entry["curr"]));
  const double expected = entry["expect"]["loss"];
  EXPECT_NEAR(loss_of(result), expected, 1e-3 * std::abs(expected));
  EXPECT_EQ(result.count, 3);
}

TEST(PpoClip, AgreesWithNemoRl) {
  const auto entry = reference_case("ppo_clip");
  if (!entry) GTEST_SKIP() << "no test data";
  expect_agrees_with_nemo_rl(*entry);
}

TEST(PpoClip, DualClipAgreesWithNemoRl) {
  const auto entry = reference_case("ppo_dual_clip");
  if (!entry) GTEST_SKIP() << "no test data";
  expect_agrees_with_nemo_rl(*entry);
}

// log 0.5, log 1.1, log 2 for both signs of the advantage: only moves that already went too far the right way are cut off.
TEST(PpoClip, GradientIsThatOfTheClippedSurrogate) {
  const Vector logprobs{std::log(0.5), std::log(1.1), std::log(2), std::log(0.5), std::log(1.1), std::log(2)};
  const auto loss = ppo({.clip_low = 0.2, .clip_high = 0.4}, Vector(6, 0.0), {1, 1, 1, -1, -1, -1});
  const Vector expected{-0.5, -1.1, 0, 0, 1.1, 2};
  const Vector actual = gradient(loss, logprobs);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
  expect_gradient_is_numeric(loss, logprobs);
  expect_gradient_is_numeric(ppo({.dual_clip = 1.5}, Vector(6, 0.0), {1, 1, 1, -1, -1, -1}), logprobs);
}

TEST(PpoClip, UpperAndLowerBoundAreSeparate) {
  const auto result = ppo({.clip_low = 0.1, .clip_high = 0.5}, {0, 0}, {1, -1})(tensor({std::log(3), std::log(0.2)}));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), -1.5 + 0.9, 1e-12);
  EXPECT_EQ(metric(result, "clip_fraction"), 1);
  EXPECT_NEAR(metric(result, "ratio_max"), 3, 1e-12);
  EXPECT_NEAR(metric(result, "ratio_mean"), 1.6, 1e-12);
}

TEST(PpoClip, NoActionsLoseNothing) {
  const auto result = ppo({}, {}, {})(tensor({}).requires_grad_(true));
  EXPECT_EQ(result.count, 0);
  EXPECT_EQ(result.loss_sum.item().toDouble(), 0);
}

TEST(PpoClip, HugeRatioHasAFiniteGradient) {
  at::Tensor logprobs = at::tensor({0.0f, 0.0f}).requires_grad_(true);
  const auto result = PpoClip({}).compute(
      {.logprobs = logprobs, .old_logprobs = at::tensor({-500.0f, -500.0f}), .advantages = at::tensor({1.0f, -1.0f})});
  result.loss_sum.backward();
  EXPECT_TRUE(logprobs.grad().isfinite().all().item().toBool());
}

TEST(PpoClip, NanIsNotHidden) { EXPECT_TRUE(std::isnan(loss_of(ppo({}, {0, 0}, {1, std::nan("")})(tensor({0, 0}))))); }

TEST(Reinforce, GradientIsMinusTheAdvantage) {
  const Loss loss = [](const at::Tensor& logprobs) {
    return Reinforce({}).compute({.logprobs = logprobs, .old_logprobs = {}, .advantages = tensor({2, -3})});
  };
  EXPECT_NEAR(loss(tensor({-1, -2})).loss_sum.item().toDouble(), 2 - 6, 1e-12);
  EXPECT_EQ(gradient(loss, {-1, -2}), (Vector{-2, 3}));
}

// old 0, clip 0.2. Entries: inside; outside but towards the return (clipped error is larger: no gradient); outside and away from
// it.
TEST(ValueClip, MovesBeyondTheRangeAreNotRewarded) {
  const auto loss = value_clip(0.2, {0, 0, 0}, {1, 1, -1});
  const auto result = loss(tensor({0.1, 0.5, 0.5}));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), (0.81 + 0.64 + 2.25) / 2, 1e-12);
  EXPECT_NEAR(metric(result, "value_clip_fraction"), 1.0 / 3, 1e-12);
  const Vector expected{-0.9, 0, 1.5};
  const Vector actual = gradient(loss, {0.1, 0.5, 0.5});
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
  expect_gradient_is_numeric(loss, {0.1, 0.5, 0.5});
}

TEST(ValueMse, GradientIsTheError) {
  const Loss loss = [](const at::Tensor& values) {
    return ValueMse({}).compute({.values = values, .old_values = {}, .returns = tensor({1, 5})});
  };
  EXPECT_NEAR(loss(tensor({3, 4})).loss_sum.item().toDouble(), 2.5, 1e-12);
  EXPECT_EQ(gradient(loss, {3, 4}), (Vector{2, -1}));
}

}  // namespace
}  // namespace sluice::nodes
