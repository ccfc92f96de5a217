#pragma once

#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "nodes/objectives/objective.h"

/// What the tests of objectives share: losses of vectors in double precision.
namespace sluice::nodes::testing {

using Vector = std::vector<double>;
using Loss = std::function<ObjectiveResult(const at::Tensor&)>;

inline at::Tensor tensor(const Vector& values) { return at::tensor(values, at::kDouble); }

inline Vector vector_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

/// The inputs of an objective that is asked about one sample.
inline ObjectiveInputs one_sample(const at::Tensor& logprobs, const Vector& old_logprobs, const Vector& advantages) {
  return {.logprobs = logprobs,
          .old_logprobs = tensor(old_logprobs),
          .rollout_logprobs = {},
          .reference_logprobs = {},
          .entropy = {},
          .advantages = tensor(advantages),
          .mask = {},
          .action_offsets = {0, logprobs.numel()}};
}

inline Vector gradient(const Loss& loss, const Vector& x) {
  at::Tensor input = tensor(x).requires_grad_(true);
  loss(input).loss_sum.backward();
  return vector_of(input.grad());
}

inline double loss_of(const ObjectiveResult& result) { return result.loss_sum.item().toDouble() / result.count; }

/// Central differences; `x` must stay clear of the kinks.
inline void expect_gradient_is_numeric(const Loss& loss, const Vector& x, double tolerance = 1e-6) {
  constexpr double kStep = 1e-6;
  const Vector analytic = gradient(loss, x);
  for (size_t i = 0; i < x.size(); ++i) {
    Vector up = x, down = x;
    up[i] += kStep, down[i] -= kStep;
    const double numeric =
        (loss(tensor(up)).loss_sum.item().toDouble() - loss(tensor(down)).loss_sum.item().toDouble()) / (2 * kStep);
    EXPECT_NEAR(analytic[i], numeric, tolerance * std::max(1.0, std::abs(numeric))) << "entry " << i;
  }
}

inline void expect_near(const Vector& actual, const Vector& expected, double tolerance = 1e-12) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << "entry " << i;
}

inline double metric(const ObjectiveResult& result, const std::string& name) {
  for (const ObjectiveMetric& metric : result.metrics) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

}  // namespace sluice::nodes::testing
