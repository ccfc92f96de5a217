#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "models/adapters/lora.h"
#include "models/forward/action_logprobs.h"
#include "models/forward/transformer.h"
#include "models/memory/host_copy.h"
#include "models/sample/generation_backend.h"
#include "models/train/adamw.h"
#include "tests/fake_device/fake_device.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"
#include "tests/models/tensors.h"

// What a run does with a model, step by step, on a fake device and on the CPU.
namespace sluice::models::model_test {
namespace {

constexpr double kRounding = 1e-5;
constexpr double kEps = 1e-2;  // so large that AdamW makes no whole steps out of the rounding of what is nearly 0
const std::vector<int64_t> kOffsets{0, 9, 10, 15};

at::Device device() { return *devices::find("fake:0"); }

Weights trained(Weights weights) {
  for (const auto& [name, weight] : weights.named()) weight.set_requires_grad(true);
  return weights;
}

at::Tensor tokens_of(const ModelConfig& config) { return at::arange(kOffsets.back()).mul(7).remainder(config.vocab_size); }

/// A model that is trained, published, sampled from and saved.
class Course {
 public:
  Course(const ModelConfig& config, Weights weights, Compute compute = {})
      : model_(config, std::move(weights), compute),
        optimizer_(model_.weights().trainable(), {.learning_rate = 1e-2, .eps = kEps, .weight_decay = 0.1, .clip_grad_norm = 1}),
        backend_(GenerationBackend::make(config, {.sampling = {.temperature = 0},
                                                  .device = model_.device(),
                                                  .precision = compute.precision,
                                                  .block_size = 16,
                                                  .blocks = 8})),
        begin_(model_.weights(), compute.precision),
        published_(compute.precision),
        copy_(optimizer_.parameters().size()) {
    published_.pack(model_.weights());
  }

  /// Log-probabilities [A], of which the weights learn.
  at::Tensor learn() {
    const at::Tensor tokens = tokens_of(model_.config());
    const at::Tensor hidden = model_.hidden_states(tokens.to(model_.device()), kOffsets);
    const at::Tensor logprobs = action_logprobs(hidden, model_.weights(), tokens.roll(-1).to(model_.device())).to(at::kCPU);
    logprobs.sum().neg().backward();
    norm_ = optimizer_.step(1.0 / static_cast<double>(logprobs.numel()));
    published_.pack(model_.weights());
    return logprobs.detach();
  }

  /// By the newest version, and by the one that it began with.
  std::vector<double> sample() { return sample(published_); }
  std::vector<double> sample_of_begin() { return sample(begin_); }

  /// What a checkpoint has of the weights.
  at::Tensor saved() {
    copy_.copy({optimizer_.parameters().weight_buffer()});
    return copy_.tensor();
  }

  double norm() const { return norm_; }

 private:
  // Log-probabilities of the likeliest tokens after a prompt and a token.
  std::vector<double> sample(const PackedWeights& weights) {
    backend_->reserve(64);
    std::vector<int64_t> prompt(static_cast<size_t>(std::min<int64_t>(17, model_.config().steady_positions() - 1)));
    std::iota(prompt.begin(), prompt.end(), 1);
    const std::vector<int64_t> single{3}, next{4};
    const auto read_of_prompt = static_cast<int64_t>(prompt.size());
    const std::vector<int32_t> first{5, 2}, second{3};
    const std::array<TokenDraw, 2> draws{TokenDraw{.row = 0, .uniform = 0.5}, TokenDraw{.row = 1, .uniform = 0.5}};
    std::array<SampledToken, 2> sampled;
    std::vector<double> logprobs;
    const std::vector<DecodeSequence> read{{.tokens = prompt, .cached = 0, .blocks = first},
                                           {.tokens = single, .cached = 0, .blocks = second}};
    const std::vector<DecodeSequence> on{{.tokens = next, .cached = read_of_prompt, .blocks = first},
                                         {.tokens = next, .cached = 1, .blocks = second}};
    for (const auto* step : {&read, &on}) {
      backend_->step(weights, *step, draws, sampled);
      for (const SampledToken& token : sampled) logprobs.push_back(token.logprob);
    }
    return logprobs;
  }

  Transformer model_;
  AdamW optimizer_;
  std::unique_ptr<GenerationBackend> backend_;
  PackedWeights begin_, published_;
  HostCopy copy_;
  double norm_ = 0;
};

// Steps amplify the rounding of what they were made from.
void expect_alike(Course here, Course there, double rounding) {
  double tolerance = rounding;
  const std::vector<double> begin = there.sample_of_begin();
  for (int step = 0; step < 2; ++step) {
    EXPECT_LT(largest_difference(there.learn(), here.learn()), tolerance) << "step " << step;
    EXPECT_NEAR(there.norm(), here.norm(), tolerance * (1 + here.norm())) << "step " << step;
    const auto ours = there.sample(), theirs = here.sample();
    for (size_t i = 0; i < theirs.size(); ++i) EXPECT_NEAR(ours[i], theirs[i], tolerance) << "step " << step;
    tolerance *= 4;
  }
  EXPECT_EQ(there.sample_of_begin(), begin);
  EXPECT_LT(largest_difference(there.saved(), here.saved()), tolerance);
}

void expect_alike(const ModelConfig& config, double tolerance = kRounding, Compute compute = {}, at::Device there = device()) {
  at::manual_seed(1);
  const Weights weights = reference::random_weights(config, 0.2);
  expect_alike({config, trained(weights.clone()), compute}, {config, trained(weights.to(there)), compute}, tolerance);
}

// Heads that flash attention takes.
ModelConfig narrow_config(int64_t window) {
  ModelConfig config = reference::small_config();
  config.head_dim = 8;
  if (window > 0) config.windows.assign(static_cast<size_t>(config.layers), window);
  return config;
}

constexpr Compute kNarrow{.precision = Precision::kBfloat16};
constexpr double kNarrowRounding = 2e-2;

class FakeDeviceSchedules : public ::testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    device();
    fake::set_schedule(GetParam());
  }
  void TearDown() override { fake::take_counts(); }
};

TEST_P(FakeDeviceSchedules, ChangeNoNumber) {
  ModelConfig config = reference::small_config();
  config.tied_embeddings = GetParam() % 2 == 0;
  expect_alike(config);
}

INSTANTIATE_TEST_SUITE_P(Random, FakeDeviceSchedules, ::testing::Range<uint64_t>(1, 21));

class FakeDeviceSwitches : public ::testing::TestWithParam<reference::NamedConfig> {};

TEST_P(FakeDeviceSwitches, AreTrainedPublishedAndSampledFrom) { expect_alike(GetParam().config, 5e-5); }

INSTANTIATE_TEST_SUITE_P(Configs, FakeDeviceSwitches, ::testing::ValuesIn(reference::configs_of_every_switch()),
                         [](const auto& info) { return std::string(info.param.name); });

// Flash attention, and products of narrow matrices with a wide result: other roundings than the CPU's, not other numbers.
TEST(FakeDeviceBfloat16, IsTrainedPublishedAndSampledFrom) {
  for (const int64_t window : {0, 4}) {
    const ModelConfig config = narrow_config(window);
    expect_alike(config, kNarrowRounding, kNarrow);
    const Weights weights = reference::random_weights(config, 0.2);
    const Transformer wide(config, weights.to(device())), rounded(config, weights.to(device()), kNarrow);
    const at::Tensor tokens = tokens_of(config).to(device());
    const at::NoGradGuard no_gradient;
    EXPECT_GT(largest_difference(wide.hidden_states(tokens, kOffsets), rounded.hidden_states(tokens, kOffsets)), 1e-4);
  }
}

class ModelOnDevice : public devices::OnDevice {};

TEST_P(ModelOnDevice, IsTrainedPublishedAndSampledFrom) {
  for (const auto& [name, config] : reference::configs_of_every_switch()) {
    SCOPED_TRACE(name);
    expect_alike(config, 2e-4, {}, OnDevice::device());
  }
}

TEST_P(ModelOnDevice, IsTrainedPublishedAndSampledFromInBfloat16) {
  for (const int64_t window : {0, 4}) expect_alike(narrow_config(window), kNarrowRounding, kNarrow, OnDevice::device());
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelOnDevice, ::testing::Values("cuda:0"), devices::PlainName());

// The adapters alone are trained, and merged into what is published.
TEST(FakeDeviceAdapters, AreTrainedPublishedAndSampledFrom) {
  const ModelConfig config = reference::small_config();
  const auto adapted = [&](Weights weights) {
    add_adapters(weights, {.rank = 4, .alpha = 8, .targets = {"all-linear"}}, 3);
    const at::NoGradGuard no_gradient;
    for (LayerWeights& layer : weights.layers) {
      for (LinearWeights* linear : layer.linears()) {
        if (linear->adapter.defined()) linear->adapter.b.fill_(0.02);
      }
    }
    return weights;
  };
  const Weights weights = reference::random_weights(config, 0.2);
  expect_alike({config, adapted(weights.clone())}, {config, adapted(weights.to(device()))}, kRounding);
}

// Of the norm of gradients in double precision.
TEST(FakeDeviceOptimizer, TakesNoCopyOfTheGradients) {
  constexpr int64_t kFloats = int64_t{3} << 20;
  at::Tensor weight = at::ones({kFloats / 1024, 1024}, at::TensorOptions(at::kFloat).device(device()));
  weight.set_requires_grad(true);
  AdamW optimizer({{"weight", weight}}, {});
  const at::Tensor gradient = at::randn({kFloats});
  optimizer.parameters().gradient_buffer().copy_(gradient);
  fake::take_counts();
  const double norm = optimizer.gradient_norm(2);
  EXPECT_NEAR(norm, 2 * gradient.to(at::kDouble).norm().item<double>(), 1e-6 * norm);
  const fake::Counts counts = fake::take_counts();
  EXPECT_LT(counts.peak_scratch + counts.peak_bytes - counts.live_bytes, kFloats * 8 / 2);
  EXPECT_EQ(counts.host_waits, 1);
}

// A copy from memory that is not pinned makes the host wait until the device has done all before it.
TEST(FakeDeviceCopies, AreAsManyForManyLayers) {
  const auto copies = [](int64_t layers, Precision precision) {
    ModelConfig config = reference::small_config();
    config.layers = layers, config.head_dim = 8;
    const Transformer model(config, reference::random_weights(config, 0.2).to(device()), {.precision = precision});
    const at::Tensor tokens = tokens_of(config).to(device());
    fake::take_counts();
    model.hidden_states(tokens, kOffsets);
    const fake::Counts counts = fake::take_counts();
    return std::pair{counts.pageable_copies, counts.host_waits};
  };
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16})
    EXPECT_EQ(copies(5, precision), std::pair(int64_t{0}, int64_t{0}));
}

// How many rows an expert has decides what comes next.
TEST(FakeDeviceCopies, OfExpertsMakeTheHostWaitOnceAMixture) {
  ModelConfig config = reference::small_config();
  config.layers = 5, config.experts = {.count = 6, .per_token = 2, .size = 20, .shared_size = 16, .dense_layers = {1}};
  const Transformer model(config, reference::random_weights(config, 0.2).to(device()));
  const at::Tensor tokens = tokens_of(config).to(device());
  const at::NoGradGuard no_gradient;
  fake::take_counts();
  model.hidden_states(tokens, kOffsets);
  EXPECT_EQ(fake::take_counts().host_waits, config.mixtures());
}

// What they tell comes with that.
TEST(FakeDeviceCopies, OfExpertsThatTellOfTheirTokensAreNoMore) {
  ModelConfig config = reference::small_config();
  config.layers = 5, config.experts = {.count = 6, .per_token = 2, .size = 20, .shared_size = 16};
  Transformer model(config, reference::random_weights(config, 0.2).to(device()));
  for (const auto& [name, weight] : model.weights().named()) weight.set_requires_grad(true);
  model.set_routers(std::make_shared<RouterTraining>());
  const at::Tensor tokens = tokens_of(config).to(device());
  fake::take_counts();
  model.hidden_states(tokens, kOffsets);
  const fake::Counts counts = fake::take_counts();
  EXPECT_EQ(counts.host_waits, config.layers);
  EXPECT_EQ(counts.pageable_copies, 0);
  EXPECT_FALSE(model.routers()->take().samples.empty());
}

// Of 2048 actions and a large vocabulary logits are gigabytes.
TEST(FakeDeviceLogprobs, AreDifferentiatedInTwiceTheMemoryOfTheirLogits) {
  constexpr int64_t kVocabulary = 4096, kActions = 2048, kLogitBytes = kVocabulary * kActions * 4;
  const auto there = at::TensorOptions(at::kFloat).device(device());
  const at::Tensor hidden = at::ones({kActions, 2}, there).set_requires_grad(true);
  const at::Tensor head = at::ones({kVocabulary, 2}, there).set_requires_grad(true);
  const at::Tensor targets = at::full({kActions}, 7, there.dtype(at::kLong));
  fake::take_counts();
  action_logprobs(hidden, head, targets).sum().backward();
  const fake::Counts counts = fake::take_counts();
  EXPECT_GE(counts.peak_bytes, 2 * kLogitBytes);
  EXPECT_LT(counts.peak_bytes, 2 * kLogitBytes + kLogitBytes / 4);
}

TEST(FakeDeviceLogprobs, OfALargeVocabularyAreNotCutIntoSlivers) {
  constexpr int64_t kVocabulary = 152'000, kActions = 250;
  const auto there = at::TensorOptions(at::kFloat).device(device());
  const at::Tensor hidden = at::ones({kActions, 2}, there), head = at::ones({kVocabulary, 2}, there);
  const at::Tensor targets = at::full({kActions}, 7, there.dtype(at::kLong));
  const at::NoGradGuard no_gradient;
  fake::take_counts();
  const at::Tensor logprobs = action_logprobs(hidden, head, targets);
  EXPECT_LT(fake::take_counts().operators, 30);
  EXPECT_NEAR(logprobs[kActions - 1].item<double>(), -std::log(static_cast<double>(kVocabulary)), 1e-4);
}

}  // namespace
}  // namespace sluice::models::model_test
