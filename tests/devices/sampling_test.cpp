#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "models/portable/sampler.h"
#include "models/sample/generation.h"
#include "tests/fake_device/fake_device.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

// That tokens are drawn where the logits are.
namespace sluice::models::sampling_test {
namespace {

struct NamedSampling {
  const char* name;
  SamplingOptions options;

  friend void PrintTo(const NamedSampling& sampling, std::ostream* out) { *out << sampling.name; }
};

const NamedSampling kSamplings[] = {
    {"Plain", {}},
    {"Greedy", {.temperature = 0}},
    {"TopK", {.top_k = 5}},
    {"TopP", {.top_p = 0.8}},
    {"MinP", {.min_p = 0.1}},
    {"Penalties", {.repetition_penalty = 1.3, .presence_penalty = 0.4, .frequency_penalty = 0.2}},
    {"Everything",
     {.temperature = 0.8,
      .top_k = 20,
      .top_p = 0.9,
      .min_p = 0.05,
      .repetition_penalty = 1.1,
      .presence_penalty = 0.2,
      .frequency_penalty = 0.1}},
};

class FakeDeviceSampling : public ::testing::TestWithParam<NamedSampling> {
 protected:
  static at::Device device() { return *devices::find("fake:0"); }
};

constexpr int64_t kSamples = 6, kNewTokens = 40;

ModelConfig of_vocabulary(int64_t size) {
  ModelConfig config = reference::small_config();
  config.vocab_size = size;
  return config;
}

GenerationLimits limits(int64_t blocks) {
  return {.max_running_samples = kSamples, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = blocks};
}

// Samples of one prompt, one of them greedy.
void submit(GenerationEngine& engine, int64_t new_tokens) {
  std::vector<int64_t> prompt(19);
  std::iota(prompt.begin(), prompt.end(), 3);
  const PromptTokens shared(prompt);
  for (int64_t i = 0; i < kSamples; ++i)
    engine.submit({.id = static_cast<uint64_t>(i),
                   .prompt = shared,
                   .max_new_tokens = new_tokens,
                   .stream = RandomStream(11, static_cast<uint64_t>(i)),
                   .greedy = i == 2});
}

// What comes to the host in the step that reads the prompt, and in those that follow.
TEST_P(FakeDeviceSampling, GivesTheHostAsMuchOfALargeVocabularyAsOfASmallOne) {
  for (const int64_t vocabulary : {37, 4001}) {
    const ModelConfig config = of_vocabulary(vocabulary);
    PackedWeights weights(Precision::kFloat32);
    weights.pack(reference::random_weights(config, 0.3).to(device()));
    GenerationEngine engine(config, {.sampling = GetParam().options, .device = device()}, limits(64));
    submit(engine, 5);
    int64_t sampled = 0;
    while (!engine.idle()) {
      fake::take_counts();
      engine.step(weights);
      const fake::Counts counts = fake::take_counts();
      const int64_t samples = engine.last_step().sampled_tokens;
      EXPECT_EQ(counts.bytes_to_host, 16 * samples) << "of " << vocabulary << " ids";
      EXPECT_EQ(counts.copies_to_host, samples > 0 ? 1 : 0);
      EXPECT_EQ(counts.host_waits, counts.copies_to_host);
      EXPECT_EQ(counts.pageable_copies, 0);
      sampled += samples;
    }
    EXPECT_EQ(sampled, 5 * kSamples);
  }
}

struct Sampled {
  std::vector<SampleResult> results;  // by id
  int64_t preemptions = 0;
};

// Samples that pause and are given tokens, in blocks that they share, and of which there are too few for all.
Sampled sampled_on(at::Device device, const SamplingOptions& sampling) {
  const ModelConfig config = of_vocabulary(61);
  at::manual_seed(4);
  const Weights weights = reference::random_weights(config, 0.3);
  PackedWeights packed(Precision::kFloat32);
  packed.pack(weights.to(device));
  GenerationLimits few = limits(14);
  few.admission = KvAdmission::kOnDemand;
  GenerationEngine engine(config, {.sampling = sampling, .device = device}, few);
  std::vector<uint64_t> paused;
  engine.set_judge([&](uint64_t id, std::span<const int64_t> tokens) {
    if (id % 2 == 0 || tokens.size() != 7) return Next::kGoesOn;
    paused.push_back(id);
    return Next::kPauses;
  });
  submit(engine, kNewTokens);
  Sampled sampled;
  while (!engine.idle()) {
    for (const uint64_t id : std::exchange(paused, {})) engine.resume(id, std::vector<int64_t>{5, 5, 9});
    for (SampleResult& result : engine.step(packed)) sampled.results.push_back(std::move(result));
    sampled.preemptions += engine.last_step().preemptions;
  }
  std::ranges::sort(sampled.results, {}, &SampleResult::id);
  return sampled;
}

TEST_P(FakeDeviceSampling, DrawsTheTokensOfTheCpu) {
  const Sampled here = sampled_on(at::kCPU, GetParam().options), there = sampled_on(device(), GetParam().options);
  EXPECT_GT(there.preemptions, 0);
  ASSERT_EQ(there.results.size(), static_cast<size_t>(kSamples));
  for (size_t i = 0; i < there.results.size(); ++i) {
    EXPECT_EQ(there.results[i].tokens, here.results[i].tokens) << "sample " << i;
    for (size_t t = 0; t < here.results[i].logprobs.size(); ++t)
      EXPECT_NEAR(there.results[i].logprobs[t], here.results[i].logprobs[t], 1e-4) << "sample " << i << ", token " << t;
  }
}

// The same model guesses for itself, in a cache of its own: it is right but for what ends in its midst.
TEST_P(FakeDeviceSampling, AModelThatGuessesThereChangesNothing) {
  const ModelConfig config = of_vocabulary(61);
  PackedWeights weights(Precision::kFloat32);
  weights.pack(reference::random_weights(config, 0.3).to(device()));
  int64_t guessed = 0, right = 0;
  const auto sampled_with = [&](int64_t drafts) {
    GenerationOptions options{.sampling = GetParam().options, .device = device()};
    if (drafts > 0) options.draft = DraftOptions{.config = config, .device = device(), .cost = 0};
    GenerationLimits with = limits(64);
    with.drafts.tokens = drafts;
    GenerationEngine engine(config, options, with);
    submit(engine, kNewTokens);
    std::vector<SampleResult> results;
    while (!engine.idle()) {
      for (SampleResult& result : engine.step(weights, drafts > 0 ? &weights : nullptr)) results.push_back(std::move(result));
      guessed += engine.last_step().drafted_tokens, right += engine.last_step().kept_drafts;
    }
    std::ranges::sort(results, {}, &SampleResult::id);
    return results;
  };
  const std::vector<SampleResult> expected = sampled_with(0), results = sampled_with(4);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].tokens, expected[i].tokens) << "sample " << i;
  EXPECT_GT(guessed, kSamples * kNewTokens / 2);
  EXPECT_GE(right, guessed * 9 / 10);
}

// Beside the logits, what is there at a time on the device, and what an operator takes beside its results.
TEST_P(FakeDeviceSampling, TakesNoMoreMemoryThanItIsGiven) {
  constexpr int64_t kRows = 96, kVocabulary = 5000, kBytes = int64_t{4} << 20, kSmall = int64_t{1} << 16;
  const at::Tensor logits = at::randn({kRows, kVocabulary}).to(device());
  const portable::Texts texts{at::randint(kVocabulary, {kRows, 500}, at::kLong).to(device()),
                              at::full({kRows, 1}, 400, at::kLong).to(device())};
  const std::vector<int64_t> prompt(300);
  std::vector<TokenDraw> draws;
  for (int64_t i = 0; i < kRows; ++i) draws.push_back({.row = kRows - 1 - i, .uniform = 0.4, .prompt = prompt});
  std::vector<SampledToken> tokens(draws.size());
  const auto taken = [&](int64_t bytes) {
    const int64_t before = fake::take_counts().live_bytes;
    portable::Sampler(GetParam().options, bytes).sample(logits, texts, draws, tokens);
    const fake::Counts counts = fake::take_counts();
    return counts.peak_bytes - before + counts.peak_scratch;
  };
  EXPECT_LT(taken(kBytes), kBytes + kSmall);
  EXPECT_GT(taken(kBytes * 16), kBytes + kSmall);
}

INSTANTIATE_TEST_SUITE_P(Options, FakeDeviceSampling, ::testing::ValuesIn(kSamplings),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sluice::models::sampling_test
