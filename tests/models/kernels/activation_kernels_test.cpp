#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/kernels/training_kernels.h"
#include "tests/models/instruction_sets.h"
#include "tests/models/tensors.h"

namespace sluice::models::activation_kernels_test {
namespace {

at::Tensor activated(const at::Tensor& x, Activation activation) {
  if (activation == Activation::kSilu) return at::silu(x);
  return at::gelu(x, activation == Activation::kGelu ? "none" : "tanh");
}

Bfloat16* narrow_data(const at::Tensor& x) { return static_cast<Bfloat16*>(x.mutable_data_ptr()); }

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
    for (const InstructionSet set : runnable_instruction_sets()) {
      const at::Tensor out = at::empty({count}), slope = exact.detach().to(at::kFloat), value = at::ones({count});
      activation_forward<float>(activation, x.data(), nullptr, count, {out.mutable_data_ptr<float>()}, set);
      activation_backward(activation, slope.mutable_data_ptr<float>(), nullptr, count, value.mutable_data_ptr<float>(), set);
      EXPECT_LT(largest_difference(out, expected.detach()), 2e-6);
      EXPECT_LT(largest_difference(slope, exact.grad()), 1e-6);
      EXPECT_TRUE(value.equal(out));
    }
  }
}

// What is kept is what was given, rounded; the result is of what was given.
TEST(ActivationKernels, RoundedResultsAreOfUnroundedArguments) {
  const at::Tensor gate = at::randn({101}) * 4.0, up = at::randn({101});
  const at::Tensor expected = activated(gate.to(at::kDouble), Activation::kSilu) * up.to(at::kDouble);
  for (const InstructionSet set : runnable_instruction_sets()) {
    const at::Tensor out = at::empty({101}, at::kBFloat16), kept_gate = at::empty_like(out), kept_up = at::empty_like(out);
    activation_forward<Bfloat16>(Activation::kSilu, gate.const_data_ptr<float>(), up.const_data_ptr<float>(), 101,
                                 {narrow_data(out), narrow_data(kept_gate), narrow_data(kept_up)}, set);
    EXPECT_LT(((out.to(at::kDouble) - expected).abs() / (expected.abs() + 1e-6)).max().item<double>(), 1.01 / 256);
    EXPECT_TRUE(kept_gate.equal(gate.to(at::kBFloat16)));
    EXPECT_TRUE(kept_up.equal(up.to(at::kBFloat16)));
  }
}

// Everything is computed in float32 from the rounded numbers and rounded once.
TEST(ActivationKernels, GatedGradientsMatchTheFormulaInBothPrecisions) {
  const at::Tensor gate = at::randn({101}) * 4.0, up = at::randn({101}), grad = at::randn({101});
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto exact = [&](const at::Tensor& x) { return x.to(type).to(at::kDouble).set_requires_grad(true); };
    const at::Tensor exact_gate = exact(gate), exact_up = exact(up);
    const at::Tensor expected = activated(exact_gate, Activation::kSilu) * exact_up;
    expected.backward(exact(grad).detach());
    for (const InstructionSet set : runnable_instruction_sets()) {
      const at::Tensor of_gate = gate.to(type).clone(), of_up = up.to(type).clone(), value = grad.to(type).clone();
      if (type == at::kFloat) {
        activation_backward(Activation::kSilu, of_gate.mutable_data_ptr<float>(), of_up.mutable_data_ptr<float>(), 101,
                            value.mutable_data_ptr<float>(), set);
      } else {
        activation_backward(Activation::kSilu, narrow_data(of_gate), narrow_data(of_up), 101, narrow_data(value), set);
      }
      const double share = type == at::kFloat ? 1e-6 : 1.0 / 256;
      EXPECT_LT(largest_difference(value, expected.detach()), share * expected.abs().max().item<double>());
      EXPECT_LT(largest_difference(of_gate, exact_gate.grad()), share * exact_gate.grad().abs().max().item<double>());
      EXPECT_LT(largest_difference(of_up, exact_up.grad()), share * exact_up.grad().abs().max().item<double>());
    }
  }
}

}  // namespace
}  // namespace sluice::models::activation_kernels_test
