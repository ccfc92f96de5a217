#include "models/training/linear_layer.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/kernels/weight_gradient.h"

namespace sluice::models {
namespace {

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

at::Tensor parameter(at::IntArrayRef shape) { return at::randn(shape).set_requires_grad(true); }

at::Tensor exact(const at::Tensor& x) { return x.detach().to(at::kDouble).set_requires_grad(true); }

struct Shape {
  int64_t rows, inputs, outputs;
};

// Sizes around the edges of tiles (12 x 32), row blocks (256) and input blocks (512).
class LinearLayerShapes : public testing::TestWithParam<Shape> {};

TEST_P(LinearLayerShapes, ValueAndGradientsMatchTheFormula) {
  const auto [rows, inputs, outputs] = GetParam();
  const at::Tensor x = parameter({rows, inputs}), weight = parameter({outputs, inputs}), bias = parameter({outputs});
  const at::Tensor residual = parameter({rows, outputs});
  const at::Tensor x2 = exact(x), weight2 = exact(weight), bias2 = exact(bias), residual2 = exact(residual);
  const at::Tensor out = linear_layer(x, weight, bias) + linear_layer_onto(residual, x, weight, bias) + linear_layer(x, weight);
  const at::Tensor expected = at::matmul(x2, weight2.t()) * 3.0 + bias2 * 2.0 + residual2;
  EXPECT_LT(largest_difference(out, expected), 3e-4);

  const at::Tensor grad = at::randn(out.sizes());
  out.backward(grad);
  expected.backward(grad.to(at::kDouble));
  EXPECT_LT(largest_difference(x.grad(), x2.grad()), 3e-4);
  EXPECT_LT(largest_difference(weight.grad(), weight2.grad()), 3e-4);
  EXPECT_LT(largest_difference(bias.grad(), bias2.grad()), 1e-4);
  EXPECT_LT(largest_difference(residual.grad(), residual2.grad()), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearLayerShapes,
                         testing::Values(Shape{1, 1, 1}, Shape{7, 33, 13}, Shape{300, 64, 48}, Shape{257, 32, 12},
                                         Shape{40, 530, 25}));

TEST(LinearLayer, FrozenWeightGetsNoGradient) {
  const at::Tensor x = parameter({3, 4}), weight = at::randn({5, 4});
  linear_layer(x, weight).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(weight.grad().defined());
}

TEST(LinearLayer, AnyNumberOfThreadsGivesTheSameBits) {
  const at::Tensor x = parameter({700, 96}), weight = parameter({130, 96}), grad = at::randn({700, 130});
  const auto gradients = [&](int threads) {
    at::set_num_threads(threads);
    x.mutable_grad().reset();
    weight.mutable_grad().reset();
    linear_layer(x, weight).backward(grad);
    return std::pair(x.grad(), weight.grad());
  };
  const int before = at::get_num_threads();
  const auto one = gradients(1), three = gradients(3);
  at::set_num_threads(before);
  EXPECT_TRUE(one.first.equal(three.first));
  EXPECT_TRUE(one.second.equal(three.second));
}

class WeightGradientMachines : public testing::TestWithParam<Machine> {};

TEST_P(WeightGradientMachines, KernelOfEachMachineMatchesTheFormula) {
  if (GetParam() < this_machine()) GTEST_SKIP() << "this machine has no such registers";
  const at::Tensor x = at::randn({70, 45}), grad = at::randn({70, 27}), out = at::zeros({27, 45});
  add_weight_gradient({.grad = grad.const_data_ptr<float>(),
                       .x = x.const_data_ptr<float>(),
                       .out = out.mutable_data_ptr<float>(),
                       .rows = 70,
                       .outputs = 27,
                       .inputs = 45},
                      GetParam());
  EXPECT_LT(largest_difference(out, at::matmul(exact(grad).t(), exact(x))), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, WeightGradientMachines, testing::Values(Machine::kV4, Machine::kV3, Machine::kBaseline));

}  // namespace
}  // namespace sluice::models
