#include "models/portable/activation_bytes.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/train/adamw.h"
#include "tests/fake_device/fake_device.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

// What passes take of a device, counted by the allocator of the fake one, against what a plan says of them.
namespace sluice::models::activation_bytes_test {
namespace {

using portable::DevicePass;

constexpr int64_t kTokens = 192, kLongest = 12;

at::Device device() { return *devices::find("fake:0"); }

// All alike, so that a pass of a sample that is longer takes no more.
std::vector<int64_t> offsets() {
  std::vector<int64_t> offsets;
  for (int64_t at = 0; at <= kTokens; at += kLongest) offsets.push_back(at);
  return offsets;
}

// A shape in which tokens take more than weights do.
ModelConfig widened(ModelConfig config, uint64_t seed) {
  RandomStream random(seed, 9);
  const auto any = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random.below(static_cast<uint64_t>(most - least + 1)));
  };
  config.vocab_size = any(200, 900);
  config.layers = any(1, 4);
  config.windows.assign(config.windows.empty() ? 0 : static_cast<size_t>(config.layers), 4);
  const std::vector<int64_t> ropes = std::exchange(config.rope_of_layer, {});
  for (size_t i = 0; !ropes.empty() && i < static_cast<size_t>(config.layers); ++i)
    config.rope_of_layer.push_back(ropes[i % ropes.size()]);
  return config;
}

class Measured {
 public:
  Measured(const ModelConfig& config, const DevicePass& pass)
      : pass_(pass),
        model_(config, trained(reference::random_weights(config, 0.2).to(device()), pass.training),
               {pass.precision, pass.recompute ? ActivationCheckpointing::kLayer : ActivationCheckpointing::kNone}) {
    if (pass.training) optimizer_.emplace(model_.weights().trainable(), AdamWOptions{.learning_rate = 1e-2});
    run();  // what is made once
    if (optimizer_) optimizer_->step(1);
  }

  // The most bytes beside those that are there before.
  int64_t peak() {
    const int64_t before = fake::take_counts().live_bytes;
    run();
    const fake::Counts counts = fake::take_counts();
    return counts.peak_bytes - before;
  }

 private:
  static Weights trained(Weights weights, bool training) {
    if (training)
      for (const auto& [name, weight] : weights.named()) weight.set_requires_grad(true);
    return weights;
  }

  void run() {
    const at::AutoGradMode mode(pass_.training);
    const at::Tensor tokens = at::arange(kTokens).mul(7).remainder(model_.config().vocab_size).to(device());
    const at::Tensor hidden = model_.hidden_states(tokens, offsets());
    const at::Tensor logprobs = action_logprobs(hidden, model_.weights(), tokens.roll(-1));
    if (pass_.training) logprobs.sum().neg().backward();
  }

  const DevicePass pass_;
  Transformer model_;
  std::optional<AdamW> optimizer_;
};

class FakeDeviceActivations : public ::testing::TestWithParam<reference::NamedConfig> {};

TEST_P(FakeDeviceActivations, TakeNoMoreThanIsPlannedAndNotMuchLess) {
  for (uint64_t seed = 0; seed < 1; ++seed) {
    const ModelConfig config = widened(GetParam().config, seed);
    for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
      for (const auto& [training, recompute] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
        const DevicePass pass{.training = training, .tokens = kTokens, .precision = precision, .recompute = recompute};
        SCOPED_TRACE("seed " + std::to_string(seed) + (precision == Precision::kFloat32 ? ", float32" : ", bfloat16") +
                     (training ? ", training" : "") + (recompute ? ", recomputing" : ""));
        const int64_t planned = portable::activation_bytes(config, pass), peak = Measured(config, pass).peak();
        // Pieces of experts have sizes of chance, and norms on both sides keep twice as much of [T,H]; this allocator rounds to
        // powers of two, where that of CUDA rounds to 512 bytes.
        const bool twice = config.norm_place == NormPlace::kBoth;
        const double rounded = config.experts.any() ? 1.2 : twice ? 1.05 : 1;
        EXPECT_LE(static_cast<double>(peak), rounded * static_cast<double>(planned));
        EXPECT_GE(2.5 * static_cast<double>(peak), static_cast<double>(planned));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, FakeDeviceActivations, ::testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::models::activation_bytes_test
