#include "models/portable/decoder.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/numbers/random.h"
#include "models/cuda/own_kernels.h"
#include "models/portable/abilities.h"
#include "models/portable/layer_maths.h"
#include "models/sample/decoder.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

namespace sluice::models::portable::decoder_test {
namespace {

struct Running {
  std::vector<int64_t> tokens;
  std::vector<int32_t> blocks;
  int64_t cached = 0;
};

constexpr int64_t kBlock = 16, kBlocks = 24, kPerSequence = 4;

// Three sequences of different lengths, whose blocks lie anywhere.
std::vector<Running> three_sequences(const ModelConfig& config) {
  RandomStream random(5, 0);
  std::vector<Running> all(3);
  std::vector<int32_t> free(kBlocks);
  for (int32_t i = 0; i < kBlocks; ++i) free[static_cast<size_t>(i)] = (i * 7 + 3) % kBlocks;
  for (size_t s = 0; s < all.size(); ++s) {
    const int64_t length = std::min<int64_t>(config.steady_positions(), 19 + 15 * static_cast<int64_t>(s));
    for (int64_t i = 0; i < length; ++i)
      all[s].tokens.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(config.vocab_size))));
    all[s].blocks.assign(free.begin() + static_cast<int64_t>(s) * kPerSequence,
                         free.begin() + static_cast<int64_t>(s + 1) * kPerSequence);
  }
  return all;
}

// The next `counts[s]` tokens of each sequence; 0: it is not in the step. Rows of logits [S,V].
at::Tensor step(Decoder& decoder, const Weights& weights, std::vector<Running>& running, const std::vector<int64_t>& counts) {
  std::vector<DecodeSequence> batch;
  for (size_t s = 0; s < running.size(); ++s) {
    Running& of = running[s];
    if (counts[s] == 0) continue;
    batch.push_back(
        {.tokens = std::span<const int64_t>(of.tokens).subspan(of.cached, counts[s]), .cached = of.cached, .blocks = of.blocks});
    of.cached += counts[s];
  }
  return decoder.step(weights, batch).to(at::kCPU);
}

class LibraryDecoder : public ::testing::TestWithParam<std::tuple<reference::NamedConfig, const char*>> {
 protected:
  LibraryDecoder() : config_(std::get<0>(GetParam()).config), device_(devices::find(std::get<1>(GetParam()))) {}

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "this machine has no " << std::get<1>(GetParam());
  }

  Decoder decoder(Precision precision, DecodeKernels kernels) const {
    return Decoder(config_,
                   {.precision = precision, .device = *device_, .block_size = kBlock, .blocks = kBlocks, .kernels = kernels});
  }

  // Chunks of prompts beside single tokens, until all is read; the largest distance of a logit from the dense model's.
  double distance_from_dense(const Weights& weights, Precision precision, DecodeKernels kernels = DecodeKernels::kLibrary) {
    const Weights read = operand_copy(weights.to(*device_), precision), wide = reference::in_double(weights);
    Decoder of_device = decoder(precision, kernels);
    std::vector<Running> running = three_sequences(config_);
    std::vector<at::Tensor> expected;
    for (const Running& of : running) expected.push_back(reference::logits(config_, wide, of.tokens));
    double worst = 0, largest = 0;
    RandomStream random(9, 1);
    for (;;) {
      std::vector<int64_t> counts;
      for (const Running& of : running) {
        const auto left = static_cast<int64_t>(of.tokens.size()) - of.cached;
        counts.push_back(std::min<int64_t>(left, random.below(2) == 0 ? 1 : 7));
      }
      if (std::ranges::all_of(counts, [](int64_t count) { return count == 0; })) return worst / (1 + largest);
      const at::Tensor logits = step(of_device, read, running, counts);
      int64_t row = 0;
      for (size_t s = 0; s < running.size(); ++s) {
        if (counts[s] == 0) continue;
        const at::Tensor theirs = expected[s][running[s].cached - 1];
        worst = std::max(worst, (logits[row++] - theirs).abs().max().item<double>());
        largest = std::max(largest, theirs.abs().max().item<double>());
      }
    }
  }

  ModelConfig config_;
  std::optional<at::Device> device_;
};

TEST_P(LibraryDecoder, LogitsAreThoseOfTheDenseModel) {
  EXPECT_LT(distance_from_dense(reference::random_weights(config_), Precision::kFloat32), 1e-4);
}

TEST_P(LibraryDecoder, ByAKernelOfOursTheyAreTheSame) {
  EXPECT_LT(distance_from_dense(reference::random_weights(config_), Precision::kFloat32, DecodeKernels::kOwn), 1e-4);
}

// Through all experts: rounding might send a token to another one.
TEST_P(LibraryDecoder, InBfloat16TheyAreNear) {
  config_.experts.per_token = config_.experts.count;
  const double distance = distance_from_dense(reference::random_weights(config_, 0.15), Precision::kBfloat16);
  EXPECT_LT(distance, 5e-2);
  EXPECT_GT(distance, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Configs, LibraryDecoder,
                         ::testing::Combine(::testing::ValuesIn(reference::configs_of_every_switch()),
                                            ::testing::ValuesIn(devices::kNames)),
                         devices::NameOfCase());
INSTANTIATE_TEST_SUITE_P(FakeDevice, LibraryDecoder,
                         ::testing::Combine(::testing::ValuesIn(reference::configs_of_every_switch()),
                                            ::testing::ValuesIn(devices::kFake)),
                         devices::NameOfCase());

class LibraryDecoderOnDevice : public devices::OnDevice {
 protected:
  DecoderOptions options() const { return {.device = device(), .block_size = kBlock, .blocks = kBlocks}; }

  ModelConfig config_ = reference::small_config();
  Weights weights_ = reference::random_weights(config_);
};

TEST_P(LibraryDecoderOnDevice, GivesWhatTheDecoderOfTheCpuGives) {
  std::vector<Running> here = three_sequences(config_), there = here;
  Decoder of_device(config_, options());
  const Weights read = operand_copy(weights_.to(device()), Precision::kFloat32);
  models::Decoder of_cpu(config_);
  KvCache cache(config_, kBlock, kBlocks);
  for (const auto& counts : std::vector<std::vector<int64_t>>{{5, 9, 1}, {1, 1, 1}, {1, 1, 8}}) {
    const at::Tensor ours = step(of_device, read, here, counts);
    std::vector<DecodeSequence> batch;
    for (size_t s = 0; s < there.size(); ++s) {
      Running& of = there[s];
      batch.push_back({.tokens = std::span<const int64_t>(of.tokens).subspan(of.cached, counts[s]),
                       .cached = of.cached,
                       .blocks = of.blocks});
      of.cached += counts[s];
    }
    const auto theirs = of_cpu.step(PackedWeights(weights_), cache, batch);
    ASSERT_EQ(static_cast<size_t>(ours.numel()), theirs.size());
    for (size_t i = 0; i < theirs.size(); ++i) ASSERT_NEAR(ours.flatten()[i].item<float>(), theirs[i], 1e-4);
  }
}

TEST_P(LibraryDecoderOnDevice, ACopiedBlockHoldsTheSame) {
  Decoder decoder(config_, options());
  const Weights read = operand_copy(weights_.to(device()), Precision::kFloat32);
  std::vector<Running> running = three_sequences(config_);
  step(decoder, read, running, {9, 9, 9});
  std::vector<Running> copied = running;
  const int32_t unused = kPerSequence * 3 < kBlocks ? (kPerSequence * 3 * 7 + 3) % kBlocks : 0;
  decoder.copy_block(running[0].blocks[0], unused);
  copied[0].blocks[0] = unused;
  const at::Tensor from_copy = step(decoder, read, copied, {1, 0, 0}), from_own = step(decoder, read, running, {1, 0, 0});
  EXPECT_TRUE(from_copy.equal(from_own));
}

TEST_P(LibraryDecoderOnDevice, HeadsThatOurKernelsDoNotTakeAreRefused) {
  EXPECT_FALSE(has_paged_decode_attention(device(), kMostHeadDim + kOfHeadDim));
  EXPECT_FALSE(has_paged_decode_attention(device(), kOfHeadDim - 1));
}

TEST_P(LibraryDecoderOnDevice, AStepWithoutWantedLogitsGivesNone) {
  Decoder decoder(config_, options());
  const std::vector<int64_t> tokens{1, 2, 3};
  const std::vector<int32_t> blocks{4};
  const std::vector<DecodeSequence> batch{{.tokens = tokens, .cached = 0, .blocks = blocks, .wants_logits = false}};
  EXPECT_FALSE(decoder.step(operand_copy(weights_.to(device()), Precision::kFloat32), batch).defined());
}

TEST_P(LibraryDecoderOnDevice, ACacheThatNoDeviceHoldsIsRefused) {
  DecoderOptions huge = options();
  huge.blocks = int64_t{1} << 40;
  EXPECT_THROW(Decoder(config_, huge), UserError);
}

INSTANTIATE_TEST_SUITE_P(Devices, LibraryDecoderOnDevice, ::testing::ValuesIn(devices::kNames), devices::PlainName());
INSTANTIATE_TEST_SUITE_P(FakeDevice, LibraryDecoderOnDevice, ::testing::ValuesIn(devices::kFake), devices::PlainName());

}  // namespace
}  // namespace sluice::models::portable::decoder_test
