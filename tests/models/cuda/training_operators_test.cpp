#include "models/cuda/training_operators.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/cuda/flat_step.h"
#include "models/cuda/own_kernels.h"
#include "models/portable/action_logprobs.h"
#include "models/portable/gated.h"
#include "models/portable/hidden_states.h"
#include "models/portable/layer_maths.h"
#include "models/portable/rms_norm.h"
#include "models/portable/rotary.h"
#include "models/train/adamw.h"
#include "tests/models/cuda/host_training_kernels.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

// What models ask for, by our kernels, beside the same in the library's operators on the CPU. On a GPU these are its kernels;
// on the CPU those bodies, for which LibTorch is told that it has them: so all between a model and a kernel runs on any
// machine.
namespace sluice::models::training_operators_test {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

// What a function gives of leaves there, and their gradients of a random weighting, on the CPU.
Tensors computed(const Function& function, const Tensors& in, at::Device device) {
  Tensors leaves;
  for (const at::Tensor& x : in) {
    leaves.push_back(x.to(device).detach().clone());
    if (at::isFloatingType(x.scalar_type())) leaves.back().set_requires_grad(true);
  }
  at::manual_seed(5);
  Tensors found;
  at::Tensor loss;
  for (const at::Tensor& out : function(leaves)) {
    found.push_back(out.detach().to(at::kCPU));
    const at::Tensor weighted = (out.to(at::kFloat) * at::randn(out.sizes()).to(device)).sum();
    loss = loss.defined() ? loss + weighted : weighted;
  }
  loss.backward();
  for (const at::Tensor& leaf : leaves) {
    if (leaf.grad().defined()) found.push_back(leaf.grad().to(at::kCPU));
  }
  return found;
}

double distance(const at::Tensor& ours, const at::Tensor& theirs) {
  const at::Tensor a = ours.to(at::kFloat), b = theirs.to(at::kFloat);
  return (a - b).norm().item<double>() / (1e-6 + b.norm().item<double>());
}

double norm_of(const at::Tensor& x) { return x.defined() ? x.norm().item<double>() : 0; }

class TrainingOperators : public devices::OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped() && device().is_cuda() && own_kernels() == nullptr) GTEST_SKIP() << "the kernels were not built";
    at::manual_seed(1);
  }

  // Of all that `work` does, our kernels do what they can.
  template <class Work>
  auto by_kernels(const Work& work) const {
    std::optional<torch::Library> library;
    if (device().is_cpu()) {
      library.emplace(torch::Library::IMPL, "sluice", c10::DispatchKey::CPU, __FILE__, __LINE__);
      offer_training_operators(*library, tests::host_training_kernels());
    }
    return work();
  }

  // Twice by our kernels, which give the same bits, and close to what the library's operators give.
  void expect_reference(const Function& function, const Tensors& in, double tolerance) const {
    const Tensors theirs = computed(function, in, at::kCPU);
    const Tensors ours = by_kernels([&] { return computed(function, in, device()); });
    const Tensors again = by_kernels([&] { return computed(function, in, device()); });
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(ours[i].scalar_type(), theirs[i].scalar_type()) << i;
      EXPECT_LT(distance(ours[i], theirs[i]), tolerance) << i;
      EXPECT_TRUE(at::equal(ours[i], again[i])) << i;
    }
  }

  // A size for a GPU, and one for bodies on the host.
  int64_t size(int64_t there, int64_t here) const { return device().is_cuda() ? there : here; }
};

constexpr at::ScalarType kTypes[] = {at::kFloat, at::kBFloat16};
double rounding(at::ScalarType type) { return type == at::kFloat ? 1e-5 : 5e-3; }

TEST_P(TrainingOperators, NormIsThatOfTheLibrary) {
  for (const at::ScalarType type : kTypes) {
    for (const bool from_one : {false, true}) {
      const auto norm = [=](const Tensors& in) { return Tensors{portable::rms_normalised(in[0], in[1], 1e-5, from_one, type)}; };
      const int64_t hidden = size(1536, 96), rows = size(3000, 40);
      expect_reference(norm, {at::randn({rows, hidden}), at::randn({hidden})}, rounding(type));
      expect_reference(norm, {at::randn({rows, 3, 128}), at::randn({128})}, rounding(type));
      expect_reference(norm, {at::randn({17, 71}), at::randn({71})}, rounding(type));
      expect_reference(norm, {at::randn({0, 64}), at::randn({64})}, rounding(type));
    }
  }
}

TEST_P(TrainingOperators, GatesAreThoseOfTheLibrary) {
  const int64_t tokens = size(700, 9);
  for (const at::ScalarType type : kTypes) {
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh, Activation::kGelu}) {
      const auto gate = [=](const Tensors& in) { return Tensors{portable::gated(activation, in[0], in[1], type)}; };
      expect_reference(gate, {at::randn({tokens, 264}).mul(3), at::randn({tokens, 264})}, rounding(type));
      expect_reference(gate, {at::randn({3, 7}), at::randn({3, 7})}, rounding(type));
      expect_reference(gate, {at::randn({0, 8}), at::randn({0, 8})}, rounding(type));
    }
  }
}

TEST_P(TrainingOperators, GatedProductsRoundWhereProductsDo) {
  const ModelConfig config = reference::small_config();
  const auto products = [&](const Tensors& in) {
    const portable::LayerMaths maths(config, Precision::kBfloat16);
    const LinearWeights gate{.weight = in[1]}, up{.weight = in[2]};
    return Tensors{maths.gated(Activation::kSilu, in[0].to(at::kBFloat16), gate, up)};
  };
  const int64_t tokens = size(900, 20);
  expect_reference(products, {at::randn({tokens, 64}), at::randn({264, 64}).mul(.3), at::randn({264, 64}).mul(.3)}, 5e-3);
}

TEST_P(TrainingOperators, RotaryPositionsAreThoseOfTheLibrary) {
  for (const at::ScalarType type : kTypes) {
    for (const auto& [heads, head_dim, dims] : {std::tuple(12, 128, 128), std::tuple(2, 80, 32), std::tuple(3, 10, 6)}) {
      const int64_t tokens = size(1000, 11);
      const at::Tensor angles = at::randn({tokens, dims}).to(device());
      const auto rotate = [&, type = type](const Tensors& in) {
        return Tensors{portable::rotated(in[0], angles.to(in[0].device()), /*neighbours=*/false, type)};
      };
      expect_reference(rotate, {at::randn({tokens, heads, head_dim})}, rounding(type));
    }
  }
}

TEST_P(TrainingOperators, LogProbabilitiesAreThoseOfTheLibrary) {
  // The last one in several chunks on a GPU.
  for (const auto& [vocabulary, actions] : {std::pair(size(151936, 304), size(37, 37)), std::pair(size(50257, 77), size(37, 37)),
                                            std::pair(size(1000, 64), size(20000, 1))}) {
    const at::Tensor targets = at::randint(vocabulary, {actions}, at::kLong);
    for (const auto precision : {Precision::kFloat32, Precision::kBfloat16}) {
      for (const auto& [softcap, entropy] : {std::pair(0.0, false), std::pair(0.0, true), std::pair(4.0, true)}) {
        const portable::LogprobOptions given{.temperature = 0.7, .softcap = softcap, .precision = precision, .entropy = entropy};
        const auto logprobs = [&](const Tensors& in) {
          const auto found = portable::action_logprobs(in[0], in[1], targets.to(in[0].device()), given);
          return entropy ? Tensors{found.logprobs, found.entropy} : Tensors{found.logprobs};
        };
        expect_reference(logprobs, {at::randn({actions, 16}), at::randn({vocabulary, 16})},
                         precision == Precision::kFloat32 ? 2e-5 : 5e-3);
      }
    }
  }
}

// What is kept for the backward is used up by one.
TEST_P(TrainingOperators, LogProbabilitiesAreDifferentiatedAgain) {
  const at::Tensor targets = at::randint(64, {5}, at::kLong).to(device());
  const at::Tensor hidden = at::randn({5, 16}).to(device()).set_requires_grad(true);
  const at::Tensor head = at::randn({64, 16}).to(device()).set_requires_grad(true);
  by_kernels([&] {
    const at::Tensor loss = portable::action_logprobs(hidden, head, targets, {.precision = Precision::kBfloat16}).logprobs.sum();
    loss.backward({}, /*retain_graph=*/true);
    const at::Tensor once = head.grad().clone();
    loss.backward();
    EXPECT_LT(distance(head.grad().to(at::kCPU), once.mul(2).to(at::kCPU)), 1e-6);
  });
}

TEST_P(TrainingOperators, OneStepIsThatOfTheKernelOfTheCpu) {
  constexpr AdamWFactors kFactors{.gradient_scale = 0.5f,
                                  .new_first = 0.1f,
                                  .new_second = 0.01f,
                                  .kept = 0.9f,
                                  .step_size = 0.2f,
                                  .root_scale = 1.5f,
                                  .epsilon = 1e-3f};
  for (const int64_t count : {size(1 << 20, 1 << 10), int64_t{77}}) {
    const Tensors here{at::randn({count}), at::randn({count}), at::randn({count}), at::randn({count}).square()};
    Tensors there;
    for (const at::Tensor& x : here) there.push_back(x.to(device()).clone());
    const double squares = by_kernels([&] { return own_sum_of_squares(there[1]).item<double>(); });
    EXPECT_NEAR(squares, sum_of_squares(here[1].const_data_ptr<float>(), count), 1e-12 * squares);
    const at::Tensor written = at::empty({count}, there[0].options().dtype(at::kBFloat16));
    by_kernels([&] { own_adamw_step(there[0], there[1], there[2], there[3], written, kFactors); });
    EXPECT_TRUE(written.equal(there[0].to(at::kBFloat16)));
    const auto data = [&](size_t i) { return here[i].mutable_data_ptr<float>(); };
    adamw_step({data(0), data(1), data(2), data(3), count}, kFactors);
    for (size_t i = 0; i < here.size(); ++i) EXPECT_LT(distance(there[i].to(at::kCPU), here[i]), 1e-6) << i;
  }
}

TEST_P(TrainingOperators, StepsAreThoseOfTheCpu) {
  const std::vector<int64_t> matrix{size(3000, 30), 50}, vector{7};
  const auto trained = [&](at::Device on) {
    at::manual_seed(3);
    const at::Tensor a = at::randn(matrix).to(on).set_requires_grad(true), b = at::randn(vector).to(on).set_requires_grad(true);
    AdamW optimizer({{"a", a}, {"b", b}}, {.learning_rate = 1e-2, .eps = 1e-2, .weight_decay = 0.1, .clip_grad_norm = 1});
    double norm = 0;
    for (int step = 0; step < 3; ++step) {
      a.mutable_grad().copy_(at::randn(matrix));
      b.mutable_grad().copy_(at::randn(vector));
      norm = optimizer.step(0.5);
      EXPECT_EQ(a.grad().abs().sum().item<float>(), 0);
    }
    return std::pair(Tensors{a.detach().to(at::kCPU), b.detach().to(at::kCPU)}, norm);
  };
  const auto [theirs, norm] = trained(at::kCPU);
  const auto [ours, our_norm] = by_kernels([&] { return trained(device()); });
  EXPECT_NEAR(our_norm, norm, 1e-6 * norm);
  for (size_t i = 0; i < ours.size(); ++i) EXPECT_LT(distance(ours[i], theirs[i]), 1e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(Devices, TrainingOperators, ::testing::ValuesIn(devices::kNames), devices::PlainName());

class TrainingOperatorsOfModels : public ::testing::TestWithParam<reference::NamedConfig> {};

// On the CPU alone: on a GPU the tests of portable/ do it.
TEST_P(TrainingOperatorsOfModels, GiveTheNumbersOfTheLibrary) {
  at::manual_seed(2);
  const ModelConfig config = GetParam().config;
  const std::vector<int64_t> offsets{0, 5, 6, 9};
  const at::Tensor tokens = at::randint(config.vocab_size, {offsets.back()}, at::kLong);
  const Weights begin = reference::random_weights(config, 0.2);
  const auto gradients = [&](Precision precision) {
    Weights weights = begin.clone();
    const auto named = reference::tensors_of(weights);
    for (const auto& [name, weight] : named) weight->set_requires_grad(true);
    const at::Tensor hidden = portable::hidden_states(config, weights, tokens, offsets, {.precision = precision});
    at::manual_seed(5);
    (hidden * at::randn(hidden.sizes())).sum().backward();
    Tensors found{hidden.detach()};
    for (const auto& [name, weight] : named) found.push_back(weight->grad().defined() ? weight->grad() : at::Tensor());
    return found;
  };
  for (const auto precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Tensors theirs = gradients(precision);
    torch::Library library(torch::Library::IMPL, "sluice", c10::DispatchKey::CPU, __FILE__, __LINE__);
    offer_training_operators(library, tests::host_training_kernels());
    const Tensors ours = gradients(precision);
    double largest = 0;  // of what hardly matters the gradient is rounding
    for (size_t i = 1; i < theirs.size(); ++i) largest = std::max(largest, norm_of(theirs[i]));
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].defined(), theirs[i].defined()) << i;
      if (!ours[i].defined()) continue;
      const double tolerance = precision == Precision::kFloat32 ? 1e-4 : 3e-2;
      EXPECT_LT(norm_of(ours[i] - theirs[i]), tolerance * (norm_of(theirs[i]) + (i == 0 ? 0 : 1e-2 * largest))) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, TrainingOperatorsOfModels, ::testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::models::training_operators_test
