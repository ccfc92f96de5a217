#include "models/rms_norm.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <gtest/gtest.h>

namespace sluice::models {
namespace {

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a.to(at::kDouble) - b).abs().max().item<double>(); }

// Widths with and without a rest after the widest registers; more rows than one block.
class RmsNormWidths : public testing::TestWithParam<int64_t> {};

TEST_P(RmsNormWidths, ValueAndGradientsMatchTheFormula) {
  const at::Tensor x = at::randn({150, GetParam()}).set_requires_grad(true),
                   weight = at::randn({GetParam()}).set_requires_grad(true);
  const at::Tensor exact = x.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor exact_weight = weight.detach().to(at::kDouble).set_requires_grad(true);
  const at::Tensor out = rms_norm(x, weight, 1e-2);
  const at::Tensor expected = exact * at::rsqrt((exact * exact).mean(1, true) + 1e-2) * exact_weight;
  EXPECT_LT(largest_difference(out, expected), 1e-5);

  const at::Tensor grad = at::randn(out.sizes());
  out.backward(grad);
  expected.backward(grad.to(at::kDouble));
  EXPECT_LT(largest_difference(x.grad(), exact.grad()), 1e-5);
  EXPECT_LT(largest_difference(weight.grad(), exact_weight.grad()), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Widths, RmsNormWidths, testing::Values(1, 16, 37, 128));

TEST(RmsNorm, AnyNumberOfThreadsGivesTheSameBits) {
  const at::Tensor x = at::randn({1000, 24}).set_requires_grad(true), weight = at::randn({24}).set_requires_grad(true);
  const at::Tensor grad = at::randn({1000, 24});
  const auto gradient_of_weight = [&](int threads) {
    at::set_num_threads(threads);
    weight.mutable_grad().reset();
    rms_norm(x, weight, 1e-6).backward(grad);
    return weight.grad().clone();
  };
  const int before = at::get_num_threads();
  const at::Tensor one = gradient_of_weight(1), three = gradient_of_weight(3);
  at::set_num_threads(before);
  EXPECT_TRUE(one.equal(three));
}

}  // namespace
}  // namespace sluice::models
