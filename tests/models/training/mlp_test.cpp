#include "models/training/mlp.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/kernels/training_kernels.h"
#include "tests/models/machines.h"

namespace sluice::models {
namespace {

constexpr int64_t kTokens = 21, kHidden = 18, kInner = 37;  // odd: rests behind the registers

double largest_difference(const at::Tensor& a, const at::Tensor& b) { return (a.to(at::kDouble) - b).abs().max().item<double>(); }

at::Tensor activated(const at::Tensor& x, Activation activation) {
  if (activation == Activation::kSilu) return at::silu(x);
  return at::gelu(x, activation == Activation::kGelu ? "none" : "tanh");
}

at::Tensor formula(const at::Tensor& x, const MlpWeights& w, Activation activation) {
  const at::Tensor up = at::linear(x, w.up, w.up_bias);
  const at::Tensor inner =
      w.gate.defined() ? activated(at::linear(x, w.gate, w.gate_bias), activation) * up : activated(up, activation);
  return at::linear(inner, w.down, w.down_bias);
}

struct Case {
  Activation activation;
  bool gate, biases, residual;
};

// Gates far out where the exponential of one sign would overflow.
MlpWeights random_weights(const Case& c) {
  const auto if_there = [](bool there, const at::Tensor& x) { return there ? x : at::Tensor(); };
  return {.gate = if_there(c.gate, at::randn({kInner, kHidden}) * 20.0),
          .up = at::randn({kInner, kHidden}) * (c.gate ? 1.0 : 20.0),
          .down = at::randn({kHidden, kInner}),
          .gate_bias = if_there(c.gate && c.biases, at::randn({kInner})),
          .up_bias = if_there(c.biases, at::randn({kInner})),
          .down_bias = if_there(c.biases, at::randn({kHidden}))};
}

std::vector<at::Tensor*> tensors(MlpWeights& w) { return {&w.gate, &w.up, &w.down, &w.gate_bias, &w.up_bias, &w.down_bias}; }

class Mlps : public testing::TestWithParam<Case> {};

TEST_P(Mlps, ValueAndGradientsMatchTheFormula) {
  MlpWeights weights = random_weights(GetParam()), exact = weights;
  at::Tensor x = at::randn({kTokens, kHidden}), exact_x = x.to(at::kDouble);
  at::Tensor residual = GetParam().residual ? at::randn({kTokens, kHidden}) : at::Tensor(), exact_residual;
  std::vector<at::Tensor*> ours = tensors(weights), theirs = tensors(exact);
  ours.insert(ours.end(), {&x, &residual}), theirs.insert(theirs.end(), {&exact_x, &exact_residual});
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!ours[i]->defined()) continue;
    ours[i]->set_requires_grad(true);
    *theirs[i] = ours[i]->detach().to(at::kDouble).set_requires_grad(true);
  }

  const at::Tensor out = mlp(residual, x, weights, GetParam().activation);
  at::Tensor expected = formula(exact_x, exact, GetParam().activation);
  if (residual.defined()) expected = expected + exact_residual;
  EXPECT_LT(largest_difference(out, expected), 1e-5 * expected.abs().max().item<double>());

  const at::Tensor grad = at::randn(out.sizes());
  out.backward(grad);
  expected.backward(grad.to(at::kDouble));
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!ours[i]->defined()) continue;
    const at::Tensor gradient = theirs[i]->grad();
    EXPECT_LT(largest_difference(ours[i]->grad(), gradient), 1e-5 * gradient.abs().max().item<double>()) << "argument " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Mlps,
                         testing::Values(Case{Activation::kSilu, true, false, true}, Case{Activation::kSilu, true, true, false},
                                         Case{Activation::kGeluTanh, true, false, false},
                                         Case{Activation::kGelu, true, true, true},
                                         Case{Activation::kGeluTanh, false, true, true},
                                         Case{Activation::kGelu, false, false, false},
                                         Case{Activation::kSilu, false, true, false}));

// From where an activation is 0 to where it is x, on every kind of machine; the last numbers do not fill a register.
TEST(ActivationKernels, ValueAndSlopeMatchLibTorchOnEveryMachine) {
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu}) {
    std::vector<float> x;
    for (int i = -1201; i <= 1201; ++i) x.push_back(static_cast<float>(i) * 0.02f);
    const auto count = static_cast<int64_t>(x.size());
    const at::Tensor exact = at::empty({count}, at::kDouble);
    for (int64_t i = 0; i < count; ++i) exact.mutable_data_ptr<double>()[i] = x[static_cast<size_t>(i)];
    exact.set_requires_grad(true);
    const at::Tensor expected = activated(exact, activation);
    expected.sum().backward();
    for (const Machine machine : machines()) {
      const std::vector<float> ones(x.size(), 1.0f);
      const at::Tensor out = at::empty({count}), slope = at::empty({count});
      activation_forward(activation, x.data(), nullptr, count, out.mutable_data_ptr<float>(), machine);
      activation_backward(activation, x.data(), nullptr, ones.data(), count, slope.mutable_data_ptr<float>(), nullptr, machine);
      EXPECT_LT(largest_difference(out, expected.detach()), 2e-6);
      EXPECT_LT(largest_difference(slope, exact.grad()), 1e-6);
    }
  }
}

TEST(Mlp, BiasOfAGateThatIsNotThereIsABug) {
  MlpWeights weights = random_weights({Activation::kSilu, false, false, false});
  weights.gate_bias = at::randn({kInner});
  EXPECT_THROW(mlp({}, at::randn({kTokens, kHidden}), weights, Activation::kSilu), InternalError);
}

}  // namespace
}  // namespace sluice::models
