#include "models/cuda/own_step.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "models/portable/abilities.h"
#include "models/portable/decoder.h"
#include "models/portable/layer_maths.h"
#include "models/sample/packed_weights.h"
#include "tests/models/cuda/host_kernels.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

// Steps by our kernels against the same in LibTorch's operators, which round in the same places: on a GPU, and on the CPU with
// kernels in plain loops, which shows that they are asked for the right things.
namespace sluice::models::own_step_test {
namespace {

using portable::Decoder, portable::DecoderOptions, portable::DecodeKernels;

constexpr int64_t kBlock = 16, kBlocks = 60, kPerSequence = 6;
constexpr size_t kSequences = 9;
constexpr double kDistance = 2e-2;  // sums of another order may round to the neighbour

/// The switches of tests, with sizes that our kernels take.
std::vector<reference::NamedConfig> configs() {
  std::vector<reference::NamedConfig> taken;
  for (reference::NamedConfig named : reference::configs_of_every_switch()) {
    ModelConfig& config = named.config;
    config.hidden_size = 64, config.intermediate_size = 96, config.head_dim = 16;
    if (!config.rope.short_factors.empty()) config.rope.short_factors.assign(8, 1.1), config.rope.long_factors.assign(8, 2.0);
    if (OwnStep::takes(config, Precision::kBfloat16)) taken.push_back(named);
  }
  return taken;
}

/// Some sequences, whose blocks lie anywhere, read by two decoders alike.
class Pair {
 public:
  Pair(const ModelConfig& config, at::Device device)
      : config_(config),
        device_(device),
        ours_(config, options(DecodeKernels::kOwn)),
        theirs_(config, options(DecodeKernels::kLibrary)) {
    RandomStream random(5, 0);
    cached_.assign(kSequences, 0);
    for (size_t s = 0; s < kSequences; ++s) {
      std::vector<int64_t>& tokens = tokens_.emplace_back();
      for (int64_t i = 0; i < std::min(config.steady_positions(), kPerSequence * kBlock); ++i)
        tokens.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(config.vocab_size))));
      std::vector<int32_t>& blocks = blocks_.emplace_back();
      for (int64_t b = 0; b < kPerSequence; ++b)
        blocks.push_back(static_cast<int32_t>((static_cast<int64_t>(s) * kPerSequence + b) * 7 % kBlocks));
    }
  }

  void use(const Weights& weights) {
    PackedWeights packed(Precision::kBfloat16);
    packed.pack(weights.to(device_));
    weights_ = device_.is_cpu() ? portable::operand_copy(weights, Precision::kBfloat16) : packed.on_device();
  }

  /// The next counts[s] tokens of sequence s; those after the last count are not in the step.
  void step(const std::vector<int64_t>& counts, bool wants_logits = true) {
    std::vector<DecodeSequence> batch;
    for (size_t s = 0; s < counts.size(); ++s) {
      const auto at = static_cast<size_t>(cached_[s]), count = static_cast<size_t>(counts[s]);
      if (count == 0 || at + count > tokens_[s].size()) continue;
      batch.push_back({.tokens = std::span<const int64_t>(tokens_[s]).subspan(at, count),
                       .cached = cached_[s],
                       .blocks = blocks_[s],
                       .wants_logits = wants_logits || s % 2 == 0});
      cached_[s] += counts[s];
    }
    ++steps_;
    const at::Tensor ours = ours_.step(weights_, batch), theirs = theirs_.step(weights_, batch);
    ASSERT_EQ(ours.defined(), theirs.defined());
    if (!ours.defined()) return;
    ASSERT_EQ(ours.sizes(), theirs.sizes());
    const double distance = ours.sub(theirs).abs().max().item<double>(), largest = theirs.abs().max().item<double>();
    EXPECT_LT(distance, kDistance * (1 + largest)) << "step " << steps_ << " of " << batch.size() << " sequences";
  }

 private:
  DecoderOptions options(DecodeKernels kernels) const {
    return {.precision = Precision::kBfloat16,
            .device = device_,
            .block_size = kBlock,
            .blocks = kBlocks,
            .kernels = kernels,
            .own_kernels = device_.is_cpu() ? &host::kernels() : nullptr};
  }

  const ModelConfig config_;
  const at::Device device_;
  Decoder ours_, theirs_;
  Weights weights_;
  std::vector<std::vector<int64_t>> tokens_;
  std::vector<std::vector<int32_t>> blocks_;
  std::vector<int64_t> cached_;
  int steps_ = 0;
};

class OwnStepOf : public ::testing::TestWithParam<std::tuple<reference::NamedConfig, const char*>> {};

TEST_P(OwnStepOf, GivesTheLogitsOfOperators) {
  const auto& [named, name] = GetParam();
  const auto device = devices::find(name);
  if (!device || (!device->is_cpu() && portable::own_kernels_of(*device) == nullptr))
    GTEST_SKIP() << "this machine has no " << name;
  Pair pair(named.config, *device);
  const Weights first = reference::random_weights(named.config, 0.15), second = reference::random_weights(named.config, 0.15);
  pair.use(first);
  const std::vector<int64_t> ones(kSequences, 1);
  pair.step({5, 1, 3}, /*wants_logits=*/false);  // prompts
  pair.step({1, 1, 7});
  for (int i = 0; i < 4; ++i) pair.step({1, 1, 1});  // the same again and again
  pair.step({1, 9, 1, 8, 2});
  for (int i = 0; i < 3; ++i) pair.step(ones);  // more than there was room for
  for (int i = 0; i < 3; ++i) pair.step({1, 1, 1});
  pair.use(second);  // what was recorded is of other weights
  for (int i = 0; i < 3; ++i) pair.step({1, 1, 1});
  pair.step({20, 1, 30}, /*wants_logits=*/false);  // wider tables
  for (int i = 0; i < 3; ++i) pair.step(ones);
  for (int i = 0; i < 3; ++i) pair.step({0, 1, 1});
}

INSTANTIATE_TEST_SUITE_P(Configs, OwnStepOf,
                         ::testing::Combine(::testing::ValuesIn(configs()), ::testing::ValuesIn(devices::kNames)),
                         devices::NameOfCase());

TEST(OwnStep, LeavesToOperatorsWhatItsKernelsDoNotKnow) {
  ModelConfig config = configs().front().config;
  EXPECT_TRUE(OwnStep::takes(config, Precision::kBfloat16));
  EXPECT_FALSE(OwnStep::takes(config, Precision::kFloat32));
  for (const auto& named : reference::configs_of_every_switch()) EXPECT_FALSE(OwnStep::takes(named.config, Precision::kBfloat16));
  config.experts = {.count = 4, .per_token = 2, .size = 32};
  EXPECT_FALSE(OwnStep::takes(config, Precision::kBfloat16));
}

}  // namespace
}  // namespace sluice::models::own_step_test
