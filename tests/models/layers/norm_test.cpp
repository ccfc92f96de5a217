#include "models/layers/norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"
#include "tests/models/instruction_sets.h"
#include "tests/models/tensors.h"

namespace sluice::models::norm_test {
namespace {

at::Tensor parameter(at::IntArrayRef shape) { return at::randn(shape).set_requires_grad(true); }

at::Tensor exact(const at::Tensor& x) { return x.detach().to(at::kDouble).set_requires_grad(true); }

at::Tensor formula(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, NormKind kind) {
  if (kind == NormKind::kLayer) return at::layer_norm(x, {x.size(1)}, weight, bias, 1e-2);
  return x * at::rsqrt((x * x).mean(1, true) + 1e-2) * (kind == NormKind::kRmsFromOne ? weight + 1.0 : weight);
}

// Widths with and without a rest after the widest registers; more rows than one block.
class Norms : public ::testing::TestWithParam<std::tuple<NormKind, int64_t>> {
 protected:
  NormKind kind_ = std::get<0>(GetParam());
  int64_t width_ = std::get<1>(GetParam());
  at::Tensor x_ = parameter({150, width_}), weight_ = parameter({width_});
  at::Tensor bias_ = kind_ == NormKind::kLayer ? parameter({width_}) : at::Tensor();
  at::Tensor exact_x_ = exact(x_), exact_weight_ = exact(weight_);
  at::Tensor exact_bias_ = bias_.defined() ? exact(bias_) : at::Tensor();
};

TEST_P(Norms, ValueAndGradientsMatchTheFormula) {
  const at::Tensor out = normalised({kind_, 1e-2, weight_, bias_}, x_);
  const at::Tensor expected = formula(exact_x_, exact_weight_, exact_bias_, kind_);
  EXPECT_LT(largest_difference(out, expected), 1e-5);

  const at::Tensor grad = at::randn(out.sizes());
  out.backward(grad);
  expected.backward(grad.to(at::kDouble));
  EXPECT_LT(largest_difference(x_.grad(), exact_x_.grad()), 2e-5);
  EXPECT_LT(largest_difference(weight_.grad(), exact_weight_.grad()), 1e-4);
  if (bias_.defined()) {
    EXPECT_LT(largest_difference(bias_.grad(), exact_bias_.grad()), 1e-4);
  }
}

TEST_P(Norms, KernelsOfEveryMachineMatchTheFormula) {
  const at::Tensor grad = at::randn(x_.sizes()), expected = formula(exact_x_, exact_weight_, exact_bias_, kind_);
  expected.backward(grad.to(at::kDouble));
  for (const InstructionSet set : runnable_instruction_sets()) {
    const at::Tensor out = at::empty(x_.sizes()), grad_x = at::empty(x_.sizes()), sums = at::zeros({2, width_});
    const at::Tensor kept = at::empty({2, x_.size(0)});
    const auto data = [](const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; };
    const NormRows<> rows{{kind_, data(weight_), data(bias_), 1e-2}, data(x_), x_.size(0), width_};
    const NormStatistics statistics{kept[0].mutable_data_ptr<float>(), kept[1].mutable_data_ptr<float>()};
    models::norm_forward(rows, statistics, out.mutable_data_ptr<float>(), set);
    models::norm_backward(rows, statistics, data(grad), grad_x.mutable_data_ptr<float>(), false,
                          {sums[0].mutable_data_ptr<float>(), bias_.defined() ? sums[1].mutable_data_ptr<float>() : nullptr},
                          set);
    EXPECT_LT(largest_difference(out, expected), 1e-5);
    EXPECT_LT(largest_difference(grad_x, exact_x_.grad()), 2e-5);
    EXPECT_LT(largest_difference(sums[0], exact_weight_.grad()), 1e-4);
    if (bias_.defined()) {
      EXPECT_LT(largest_difference(sums[1], exact_bias_.grad()), 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Norms,
                         ::testing::Combine(::testing::Values(NormKind::kRms, NormKind::kRmsFromOne, NormKind::kLayer),
                                            ::testing::Values(1, 16, 37, 128)));

TEST(Norm, AnyNumberOfThreadsGivesTheSameBits) {
  const at::Tensor x = parameter({3000, 24}), weight = parameter({24}), bias = parameter({24}), grad = at::randn({3000, 24});
  const auto gradients = [&](int threads) {
    set_loop_threads(threads);
    for (const at::Tensor& y : {weight, bias}) y.mutable_grad().reset();
    normalised({NormKind::kLayer, 1e-6, weight, bias}, x).backward(grad);
    return std::pair(weight.grad().clone(), bias.grad().clone());
  };
  const int64_t before = loop_threads();
  const auto one = gradients(1), three = gradients(3);
  set_loop_threads(before);
  EXPECT_TRUE(one.first.equal(three.first));
  EXPECT_TRUE(one.second.equal(three.second));
}

TEST(Norm, OnlyALayerNormHasABias) {
  EXPECT_THROW(normalised({NormKind::kRms, 1e-6, at::randn({4}), at::randn({4})}, at::randn({2, 4})), InternalError);
}

}  // namespace
}  // namespace sluice::models::norm_test
