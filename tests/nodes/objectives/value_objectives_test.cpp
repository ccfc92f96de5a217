#include <gmock/gmock.h>

#include <cmath>

#include "nodes/objectives/value_clip.h"
#include "nodes/objectives/value_huber.h"
#include "nodes/objectives/value_mse.h"
#include "tests/nodes/objectives/objective_support.h"

namespace sluice::nodes::value_objectives_test {
namespace {

using testing::expect_gradient_is_numeric;
using testing::expect_near;
using testing::gradient;
using testing::Loss;
using testing::metric;
using testing::tensor;
using testing::Vector;

template <class Objective, class Params>
Loss loss(const Params& params, const Vector& returns, const Vector& old_values, const Vector& mask = {}) {
  return [=](const at::Tensor& values) {
    return Objective(params).compute({.values = values,
                                      .old_values = tensor(old_values),
                                      .returns = tensor(returns),
                                      .mask = mask.empty() ? at::Tensor() : tensor(mask)});
  };
}

// old 0, clip 0.2. Entries: inside; outside but towards the return (clipped error is larger: no gradient); outside and away from
// it.
TEST(ValueClip, MovesBeyondTheRangeAreNotRewarded) {
  const auto clipped = loss<ValueClip>(ValueClipParams{.clip = 0.2}, {1, 1, -1}, {0, 0, 0});
  const auto result = clipped(tensor({0.1, 0.5, 0.5}));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), (0.81 + 0.64 + 2.25) / 2, 1e-12);
  EXPECT_NEAR(metric(result, "value/clip_fraction"), 1.0 / 3, 1e-12);
  expect_near(gradient(clipped, {0.1, 0.5, 0.5}), {-0.9, 0, 1.5});
  expect_gradient_is_numeric(clipped, {0.1, 0.5, 0.5});
}

TEST(ValueMse, GradientIsTheError) {
  const auto mse = loss<ValueMse>(ValueMseParams{}, {1, 5}, {0, 0});
  EXPECT_NEAR(mse(tensor({3, 4})).loss_sum.item().toDouble(), 2.5, 1e-12);
  expect_near(gradient(mse, {3, 4}), {2, -1});
}

TEST(ValueHuber, IsSquaredNearAndLinearFar) {
  const auto huber = loss<ValueHuber>(ValueHuberParams{.delta = 0.5}, {0, 0, 0}, {0, 0, 0});
  EXPECT_NEAR(huber(tensor({0.25, 0.5, -2})).loss_sum.item().toDouble(), 0.03125 + 0.125 + 0.5 * (2 - 0.25), 1e-12);
  expect_near(gradient(huber, {0.25, 1, -2}), {0.25, 0.5, -0.5});
  expect_gradient_is_numeric(huber, {0.25, 1, -2});
}

template <class Objective, class Params>
void expect_mask_weighs(const Params& params) {
  const Vector values{0.3, std::nan(""), 0.9}, returns{1, std::nan(""), -1}, old_values{0, std::nan(""), 0};
  const auto masked = loss<Objective>(params, returns, old_values, {1, 0, 0.5});
  const auto first = loss<Objective>(params, {1}, {0})(tensor({0.3})), last = loss<Objective>(params, {-1}, {0})(tensor({0.9}));
  const auto result = masked(tensor(values));
  EXPECT_NEAR(result.loss_sum.item().toDouble(), first.loss_sum.item().toDouble() + last.loss_sum.item().toDouble() / 2, 1e-12);
  EXPECT_EQ(result.count, 1.5);
  const Vector grad = gradient(masked, values);
  EXPECT_EQ(grad[1], 0);
  EXPECT_TRUE(std::isfinite(grad[0]) && std::isfinite(grad[2]));
}

TEST(ValueObjectives, MaskWeighsActionsAndHidesWhatItExcludes) {
  expect_mask_weighs<ValueClip>(ValueClipParams{});
  expect_mask_weighs<ValueMse>(ValueMseParams{});
  expect_mask_weighs<ValueHuber>(ValueHuberParams{});
}

TEST(ValueObjectives, NothingThatCountsLosesNothing) {
  for (const Vector& mask : {Vector{}, Vector{0, 0}}) {
    const Vector x(mask.size(), 0.5);
    const auto result = loss<ValueClip>(ValueClipParams{}, x, x, mask)(tensor(x).requires_grad_(true));
    EXPECT_EQ(result.count, 0);
    EXPECT_EQ(result.loss_sum.item().toDouble(), 0);
  }
}

}  // namespace
}  // namespace sluice::nodes::value_objectives_test
