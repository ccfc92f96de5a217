#include "models/portable/hidden_states.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/portable/action_logprobs.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

namespace sluice::models::portable::hidden_states_test {
namespace {

const std::vector<int64_t> kOffsets{0, 21, 22, 22, 30, 54};

Weights leaves(const ModelConfig& config) { return reference::leaves(reference::random_weights(config, 0.2)); }

at::Tensor random_tokens(const ModelConfig& config) { return at::randint(config.vocab_size, {kOffsets.back()}, at::kLong); }

double relative(const at::Tensor& ours, const at::Tensor& theirs) {
  return (ours - theirs).norm().item<double>() / (1e-6 + theirs.norm().item<double>());
}

// Of a backward with random weights of the hidden states, beside those of the CPU's kernels.
void expect_gradients(Weights& ours, Weights& theirs, double tolerance) {
  const auto here = reference::tensors_of(ours), there = reference::tensors_of(theirs);
  double largest = 0;
  for (const auto& [name, weight] : there) {
    if (weight->grad().defined()) largest = std::max(largest, weight->grad().norm().item<double>());
  }
  for (size_t i = 0; i < there.size(); ++i) {
    const at::Tensor expected = there[i].tensor->grad();
    if (!expected.defined()) continue;
    ASSERT_TRUE(here[i].tensor->grad().defined()) << here[i].name;
    const double distance = (here[i].tensor->grad().to(at::kCPU) - expected).norm().item<double>();
    EXPECT_LT(distance, tolerance * (expected.norm().item<double>() + 1e-2 * largest)) << here[i].name;
  }
}

class LibrarySwitches : public ::testing::TestWithParam<std::tuple<reference::NamedConfig, const char*>> {
 protected:
  LibrarySwitches() : config_(std::get<0>(GetParam()).config), device_(devices::find(std::get<1>(GetParam()))) {}

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "this machine has no " << std::get<1>(GetParam());
  }

  ModelConfig config_;
  std::optional<at::Device> device_;
};

TEST_P(LibrarySwitches, HiddenStatesAndGradientsAreThoseOfTheKernels) {
  Transformer kernels(config_, leaves(config_));
  Weights moved = reference::leaves(kernels.weights(), *device_);
  const at::Tensor tokens = random_tokens(config_), loss = at::randn({kOffsets.back(), config_.hidden_size});
  const at::Tensor theirs = kernels.hidden_states(tokens, kOffsets);
  const at::Tensor ours = hidden_states(config_, moved, tokens.to(*device_), kOffsets).to(at::kCPU);
  EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-4);
  (ours * loss).sum().backward();
  (theirs * loss).sum().backward();
  expect_gradients(moved, kernels.weights(), 1e-4);
}

TEST_P(LibrarySwitches, CheckpointedLayersGiveTheSameGradients) {
  const at::Tensor tokens = random_tokens(config_).to(*device_),
                   loss = at::randn({kOffsets.back(), config_.hidden_size}).to(*device_);
  Weights kept = leaves(config_).to(*device_);
  for (const auto& [name, weight] : reference::tensors_of(kept)) weight->set_requires_grad(true);
  Weights again = reference::leaves(kept, *device_);
  (hidden_states(config_, kept, tokens, kOffsets) * loss).sum().backward();
  (hidden_states(config_, again, tokens, kOffsets, {.checkpointing = true}) * loss).sum().backward();
  for (const auto& [name, weight] : reference::tensors_of(kept)) {
    if (weight->grad().defined()) weight->mutable_grad() = weight->grad().to(at::kCPU);
  }
  expect_gradients(again, kept, 1e-6);
}

// Rounding changes a gradient by far more than its last bits, and by far less than a wrong operand would. It would send a token
// that is near the bound between two experts to the other one: here it goes through all.
TEST_P(LibrarySwitches, Bfloat16IsFloat32Rounded) {
  config_.experts.per_token = config_.experts.count;
  Weights wide = leaves(config_).to(*device_);
  for (const auto& [name, weight] : reference::tensors_of(wide)) weight->set_requires_grad(true);
  Weights narrow = reference::leaves(wide, *device_);
  const at::Tensor tokens = random_tokens(config_).to(*device_),
                   loss = at::randn({kOffsets.back(), config_.hidden_size}).to(*device_);
  const at::Tensor expected = hidden_states(config_, wide, tokens, kOffsets);
  const at::Tensor rounded = hidden_states(config_, narrow, tokens, kOffsets, {.precision = Precision::kBfloat16});
  EXPECT_EQ(rounded.scalar_type(), at::kFloat);
  EXPECT_LT(relative(rounded, expected), 4e-2);
  EXPECT_GT(relative(rounded, expected), 1e-5);
  (expected * loss).sum().backward();
  (rounded * loss).sum().backward();
  for (const auto& [name, weight] : reference::tensors_of(narrow)) {
    if (weight->grad().defined()) EXPECT_EQ(weight->grad().scalar_type(), at::kFloat) << name;
  }
  EXPECT_LT(
      relative(narrow.layers[0].feed_forward[Mlp::kDown].weight.grad(), wide.layers[0].feed_forward[Mlp::kDown].weight.grad()),
      6e-2);
}

INSTANTIATE_TEST_SUITE_P(Configs, LibrarySwitches,
                         ::testing::Combine(::testing::ValuesIn(reference::configs_of_every_switch()),
                                            ::testing::ValuesIn(devices::kNames)),
                         devices::NameOfCase());
INSTANTIATE_TEST_SUITE_P(FakeDevice, LibrarySwitches,
                         ::testing::Combine(::testing::ValuesIn(reference::configs_of_every_switch()),
                                            ::testing::ValuesIn(devices::kFake)),
                         devices::NameOfCase());

class LibraryLogprobs : public devices::OnDevice {
 protected:
  at::Tensor random(at::IntArrayRef shape) { return at::randn(shape).to(device()).set_requires_grad(true); }
};

TEST_P(LibraryLogprobs, AreThoseOfTheKernelsWithTheirGradients) {
  constexpr double kTemperature = 0.7, kSoftcap = 3;
  const at::Tensor hidden = at::randn({41, 24}).set_requires_grad(true), head = at::randn({37, 24}).set_requires_grad(true);
  const at::Tensor targets = at::randint(37, {41}, at::kLong), a = at::randn({41}), b = at::randn({41});
  const at::Tensor moved_hidden = hidden.detach().to(device()).clone().set_requires_grad(true);
  const at::Tensor moved_head = head.detach().to(device()).clone().set_requires_grad(true);

  const auto theirs = models::action_logprobs_and_entropy(
      hidden, head, targets, models::LogprobOptions{.temperature = kTemperature, .softcap = kSoftcap});
  const auto ours = action_logprobs(moved_hidden, moved_head, targets.to(device()),
                                    {.temperature = kTemperature, .softcap = kSoftcap, .entropy = true});
  EXPECT_LT((ours.logprobs.to(at::kCPU) - theirs.logprobs).abs().max().item<double>(), 1e-5);
  EXPECT_LT((ours.entropy.to(at::kCPU) - theirs.entropy).abs().max().item<double>(), 1e-5);
  (theirs.logprobs * a + theirs.entropy * b).sum().backward();
  (ours.logprobs.to(at::kCPU) * a + ours.entropy.to(at::kCPU) * b).sum().backward();
  EXPECT_LT(relative(moved_hidden.grad().to(at::kCPU), hidden.grad()), 1e-5);
  EXPECT_LT(relative(moved_head.grad().to(at::kCPU), head.grad()), 1e-5);
}

TEST_P(LibraryLogprobs, OfManyActionsComeInChunks) {
  constexpr int64_t kVocabulary = 1 << 19, kActions = 40;  // 16 at a time
  const at::Tensor hidden = random({kActions, 2}), head = random({kVocabulary, 2});
  const at::Tensor targets = at::randint(kVocabulary, {kActions}, at::kLong).to(device());
  const at::NoGradGuard no_gradient;
  const at::Tensor all = at::log_softmax(at::matmul(hidden, head.t()), 1).gather(1, targets.unsqueeze(1)).squeeze(1);
  EXPECT_LT((action_logprobs(hidden, head, targets, {}).logprobs - all).abs().max().item<double>(), 1e-4);
}

TEST_P(LibraryLogprobs, InBfloat16RoundOnlyTheOperands) {
  const at::Tensor hidden = random({9, 16}), head = random({37, 16});
  const at::Tensor targets = at::randint(37, {9}, at::kLong).to(device());
  const at::Tensor expected =
      action_logprobs(hidden.to(at::kBFloat16).to(at::kFloat), head.to(at::kBFloat16).to(at::kFloat), targets, {}).logprobs;
  const at::Tensor ours = action_logprobs(hidden, head, targets, {.precision = Precision::kBfloat16}).logprobs;
  EXPECT_LT((ours - expected).abs().max().item<double>(), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Devices, LibraryLogprobs, ::testing::ValuesIn(devices::kNames), devices::PlainName());
INSTANTIATE_TEST_SUITE_P(FakeDevice, LibraryLogprobs, ::testing::ValuesIn(devices::kFake), devices::PlainName());

}  // namespace
}  // namespace sluice::models::portable::hidden_states_test
