#include "models/kernels/row_kernels.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "models/kernels/parallel.h"
#include "tests/models/instruction_sets.h"
#include "tests/models/tensors.h"

namespace sluice::models::row_kernels_test {
namespace {

float* data(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

// In double precision, by the definition.
at::Tensor normalized(NormKind kind, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const at::Tensor wide = x.to(at::kDouble), factor = weight.to(at::kDouble);
  if (kind == NormKind::kLayer) return at::layer_norm(wide, {x.size(-1)}, factor, bias.to(at::kDouble), epsilon);
  const at::Tensor unit = wide * at::rsqrt(wide.pow(2).mean(-1, true) + epsilon);
  return kind == NormKind::kRms ? unit * factor : unit * (factor + 1);
}

TEST(Normalize, AgreesWithTheDefinitionForAllKindsWidthsAndMachines) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const NormKind kind : {NormKind::kRms, NormKind::kRmsFromOne, NormKind::kLayer})
      for (const int64_t size : {1, 3, 16, 24, 100}) {
        const at::Tensor x = at::randn({7, size}, at::kFloat).add_(0.5), weight = at::randn({size}, at::kFloat);
        const at::Tensor bias = at::randn({size}, at::kFloat);
        const at::Tensor expected = normalized(kind, x, weight, bias, 1e-3);
        const RowNorm norm = {
            .kind = kind, .weight = data(weight), .bias = kind == NormKind::kLayer ? data(bias) : nullptr, .epsilon = 1e-3};
        const at::Tensor out = at::zeros_like(x);
        normalize(norm, data(x), 7, size, {.wide = data(out)}, set);
        EXPECT_LT(largest_difference(out, expected), 2e-5) << size;
        normalize(norm, data(x), 7, size, {.wide = data(x)}, set);
        EXPECT_TRUE(x.equal(out)) << "in place, " << size;
      }
}

// A mean that is large beside the deviation must not cancel it.
TEST(Normalize, LayerNormOfARowFarFromZeroKeepsItsDigits) {
  const at::Tensor x = at::randn({3, 200}, at::kFloat).add_(1000), weight = at::ones({200}, at::kFloat);
  const at::Tensor out = at::zeros_like(x);
  normalize({.kind = NormKind::kLayer, .weight = data(weight), .epsilon = 1e-5}, data(x), 3, 200, {.wide = data(out)});
  EXPECT_LT(largest_difference(out, normalized(NormKind::kLayer, x, weight, at::zeros({200}), 1e-5)), 1e-3);
}

at::Tensor activated(Activation kind, const at::Tensor& x) {
  switch (kind) {
    case Activation::kSilu:
      return at::silu(x);
    case Activation::kGeluTanh:
      return at::gelu(x, "tanh");
    case Activation::kGelu:
      break;
  }
  return at::gelu(x, "none");
}

TEST(Activate, AgreesWithATenInDoublePrecision) {
  const at::Tensor x = at::cat({at::linspace(-12, 12, 2001, at::kFloat), at::linspace(-0.01, 0.01, 101, at::kFloat)});
  const at::Tensor up = at::randn({x.numel()}, at::kFloat);
  for (const InstructionSet set : runnable_instruction_sets())
    for (const Activation kind : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu}) {
      const at::Tensor expected = activated(kind, x.to(at::kDouble));
      at::Tensor plain = x.clone(), gated = x.clone();
      activate(kind, data(x), nullptr, x.numel(), 1, x.numel(), {.wide = data(plain)}, set);
      activate(kind, data(x), data(up), x.numel(), 1, x.numel(), {.wide = data(gated)}, set);
      EXPECT_LT(largest_difference(plain / (1 + x.abs()), expected / (1 + x.abs())), 3e-7) << static_cast<int>(kind);
      EXPECT_LT(largest_difference(gated / (1 + x.abs()), expected * up / (1 + x.abs())), 1e-6) << static_cast<int>(kind);
    }
}

TEST(Activate, LargeInputsDoNotOverflow) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const Activation kind : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu}) {
      at::Tensor x = at::tensor({-1e30f, -1e4f, -100.0f, 100.0f, 1e4f, 1e30f});
      activate(kind, data(x), nullptr, 6, 1, 6, {.wide = data(x)}, set);
      EXPECT_TRUE(x.equal(at::tensor({0.0f, 0.0f, 0.0f, 100.0f, 1e4f, 1e30f}))) << static_cast<int>(kind);
    }
}

TEST(Activate, ARowHasTheSameBitsWhereverItStandsAndWithEveryNumberOfThreads) {
  const int64_t threads = loop_threads();
  const at::Tensor x = at::randn({900, 77}, at::kFloat), up = at::randn({900, 77}, at::kFloat);
  at::Tensor all = x.clone(), one = x.slice(0, 801, 802).clone();
  set_loop_threads(3);
  activate(Activation::kGelu, data(x), data(up), 77, 900, 77, {.wide = data(all)});
  set_loop_threads(threads);
  activate(Activation::kGelu, data(one), data(up) + 801 * 77, 77, 1, 77, {.wide = data(one)});
  EXPECT_TRUE(one[0].equal(all[801]));
}

at::Tensor narrowed(const at::Tensor& x) { return x.to(at::kBFloat16); }
Bfloat16* narrow_data(const at::Tensor& x) { return static_cast<Bfloat16*>(x.mutable_data_ptr()); }

TEST(OperandRows, InBfloat16AreThoseInFloat32RoundedOnce) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const int64_t size : {1, 15, 16, 100, 300, 515}) {
      const at::Tensor x = at::randn({3, size}, at::kFloat), up = at::randn({3, size}, at::kFloat), wide = at::zeros_like(x);
      const at::Tensor weight = at::randn({size}, at::kFloat), bias = at::randn({size}, at::kFloat), out = narrowed(wide);
      for (const NormKind kind : {NormKind::kRms, NormKind::kRmsFromOne, NormKind::kLayer}) {
        const RowNorm norm = {.kind = kind, .weight = data(weight), .bias = kind == NormKind::kLayer ? data(bias) : nullptr};
        normalize(norm, data(x), 3, size, {.wide = data(wide)}, set);
        normalize(norm, data(x), 3, size, {.narrow = narrow_data(out)}, set);
        EXPECT_TRUE(out.equal(narrowed(wide))) << "norm " << size;
      }
      activate(Activation::kSilu, data(x), data(up), size, 3, size, {.wide = data(wide)}, set);
      activate(Activation::kSilu, data(x), data(up), size, 3, size, {.narrow = narrow_data(out)}, set);
      EXPECT_TRUE(out.equal(narrowed(wide))) << "activation " << size;
      narrow(data(x), 3 * size, narrow_data(out), set);
      EXPECT_TRUE(out.equal(narrowed(x))) << size;
    }
}

TEST(SoftCap, IsTheHyperbolicTangentToTheLastDigits) {
  for (const InstructionSet set : runnable_instruction_sets())
    for (const double cap : {1.0, 30.0}) {
      const at::Tensor x = at::cat({at::linspace(-200, 200, 1001, at::kFloat), at::linspace(-1, 1, 997, at::kFloat)});
      const at::Tensor expected = (x.to(at::kDouble) / cap).tanh() * cap;
      at::Tensor out = x.clone();
      soft_cap(data(out), out.numel(), cap, set);
      EXPECT_LT(((out - expected) / (expected.abs() + 1e-6)).abs().max().item<double>(), 1e-6) << cap;
    }
}

TEST(SoftCap, KeepsWhatIsNotANumber) {
  at::Tensor x = at::full({40}, std::numeric_limits<float>::quiet_NaN());
  soft_cap(data(x), 40, 30);
  EXPECT_TRUE(x.isnan().all().item<bool>());
}

}  // namespace
}  // namespace sluice::models::row_kernels_test
