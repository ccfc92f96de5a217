#include "models/sample/generation.h"

#include <ATen/ops/log_softmax.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "tests/models/dense_reference.h"
#include "tests/models/sample/requests.h"

namespace sluice::models::generation_test {
namespace {

using ::testing::HasSubstr;

const ModelConfig kConfig = reference::small_config();

std::vector<SampleResult> finish(GenerationEngine& engine, const PackedWeights& weights) {
  std::vector<SampleResult> results;
  while (!engine.idle()) {
    for (SampleResult& result : engine.step(weights)) results.push_back(std::move(result));
    EXPECT_LE(engine.kv_blocks().in_use(), engine.backend().blocks());
  }
  std::sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return results;
}

template <class Action>
std::string user_error(Action action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

TEST(Generation, GreedyTokensAreThoseOfTheDenseModel) {
  const Weights weights = reference::random_weights(kConfig);
  const PackedWeights packed(weights);
  GenerationEngine engine(kConfig, {.sampling = {.temperature = 0}}, kLimits);
  engine.submit(request_of(1, 6, 20));
  const SampleResult result = finish(engine, packed)[0];
  std::vector<int64_t> tokens = prompt_of(1, 6);
  for (size_t i = 0; i < 20; ++i) {
    const at::Tensor logprobs = at::log_softmax(reference::logits(kConfig, weights, tokens)[-1], 0);
    ASSERT_EQ(result.tokens[i], logprobs.argmax().item<int64_t>()) << i;
    EXPECT_NEAR(result.logprobs[i], logprobs.max().item<float>(), 1e-4) << i;
    tokens.push_back(result.tokens[i]);
  }
  EXPECT_EQ(result.finish, FinishReason::kLength);
}

TEST(Generation, LogProbabilitiesAreThoseOfTheDenseModelAtTheSamplingTemperature) {
  const Weights weights = reference::random_weights(kConfig, 0.15);
  const PackedWeights packed(weights);
  GenerationEngine engine(kConfig, {.sampling = {.temperature = 0.7, .top_k = 10, .top_p = 0.9}}, kLimits);
  for (uint64_t id = 0; id < 6; ++id) engine.submit(request_of(id, 3 + static_cast<int64_t>(id), 15));
  for (const SampleResult& result : finish(engine, packed)) {
    std::vector<int64_t> tokens = prompt_of(result.id, 3 + static_cast<int64_t>(result.id));
    const int64_t first = static_cast<int64_t>(tokens.size()) - 1;
    tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
    const at::Tensor logprobs = at::log_softmax(reference::logits(kConfig, weights, tokens) / 0.7, 1);
    for (size_t i = 0; i < result.tokens.size(); ++i)
      EXPECT_NEAR(result.logprobs[i], logprobs[first + static_cast<int64_t>(i)][result.tokens[i]].item<float>(), 1e-4);
  }
}

// Random prompts, lengths, places, step sizes and block sizes: what a sample says must be what it says alone.
TEST(Generation, ASampleDoesNotDependOnWhatItRunsBeside) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.15));
  const GenerationOptions options = {.sampling = {.temperature = 0.9, .top_p = 0.95}, .end_of_sequence = {3, 17}};
  RandomStream random(77, 0);
  for (int mix = 0; mix < 12; ++mix) {
    std::vector<SampleRequest> requests;
    const uint64_t count = 1 + random.below(20);
    for (uint64_t id = 0; id < count; ++id)
      requests.push_back(request_of(id, 1 + static_cast<int64_t>(random.below(50)), 1 + static_cast<int64_t>(random.below(40))));

    const int64_t places = 1 + static_cast<int64_t>(random.below(7));
    GenerationEngine together(kConfig, options,
                              {.max_running_samples = places,
                               .max_step_tokens = places + static_cast<int64_t>(random.below(30)),
                               .kv_block_size = 16 * (1 + static_cast<int64_t>(random.below(2))),
                               .kv_blocks = 6 + static_cast<int64_t>(random.below(20))});
    for (const SampleRequest& r : requests) together.submit(r);
    const auto results = finish(together, weights);
    ASSERT_EQ(results.size(), requests.size());

    GenerationEngine alone(kConfig, options, kLimits);
    for (size_t i = 0; i < requests.size(); ++i) {
      alone.submit(requests[i]);
      const SampleResult expected = finish(alone, weights)[0];
      EXPECT_EQ(results[i].id, expected.id);
      EXPECT_EQ(results[i].tokens, expected.tokens);
      EXPECT_EQ(results[i].logprobs, expected.logprobs);  // to the bit
      EXPECT_EQ(results[i].finish, expected.finish);
    }
    EXPECT_EQ(together.kv_blocks().in_use(), 0);
  }
}

TEST(Generation, ASampleEndsWithTheEndOfSequenceThatItSampled) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.05));  // nearly uniform: ends come soon
  std::vector<int64_t> half;
  for (int64_t id = 0; id < kConfig.vocab_size; id += 2) half.push_back(id);
  GenerationEngine engine(kConfig, {.end_of_sequence = half}, kLimits);
  for (uint64_t id = 0; id < 20; ++id) engine.submit(request_of(id, 4, 60));
  const auto results = finish(engine, weights);
  for (const SampleResult& result : results) {
    EXPECT_EQ(result.tokens.size(), result.logprobs.size());
    ASSERT_EQ(result.finish, FinishReason::kEndOfSequence);
    EXPECT_EQ(result.tokens.back() % 2, 0);
    EXPECT_TRUE(std::all_of(result.tokens.begin(), result.tokens.end() - 1, [](int64_t id) { return id % 2 == 1; }));
  }
}

TEST(Generation, AnEndOfSequenceIsOneAlsoWhereTheJudgeEndsTheSample) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.05));
  std::vector<int64_t> all(static_cast<size_t>(kConfig.vocab_size));
  std::iota(all.begin(), all.end(), int64_t{0});
  GenerationEngine engine(kConfig, {.end_of_sequence = all}, kLimits);
  engine.set_judge([](uint64_t, std::span<const int64_t>) { return Next::kEnds; });
  engine.submit(request_of(0, 4, 60));
  EXPECT_EQ(finish(engine, weights)[0].finish, FinishReason::kEndOfSequence);
}

TEST(Generation, APlaceIsRefilledInTheStepAfterItWasFreed) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 2, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 40});
  engine.submit(request_of(0, 4, 10));
  engine.submit(request_of(1, 4, 3));
  engine.submit(request_of(2, 4, 10));
  EXPECT_EQ(engine.waiting(), 3);
  std::vector<uint64_t> order;
  int steps = 0;
  for (; !engine.idle(); ++steps)
    for (const SampleResult& result : engine.step(weights)) order.push_back(result.id);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 0, 2}));
  EXPECT_EQ(steps, 3 + 10);  // sample 2 starts in the fourth step, beside sample 0
}

TEST(Generation, AStepTellsThePromptTokensThatItReadAndTheTokensThatItSampled) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 2, .max_step_tokens = 8, .kv_block_size = 16, .kv_blocks = 40});
  engine.submit(request_of(0, 6, 3));
  engine.submit(request_of(1, 5, 3));
  using Work = std::pair<int64_t, int64_t>;
  const auto step = [&] {
    engine.step(weights);
    return Work(engine.last_step().prompt_tokens, engine.last_step().sampled_tokens);
  };
  EXPECT_EQ(step(), (Work{8, 1}));  // the first prompt and a part of the second
  EXPECT_EQ(step(), (Work{3, 2}));
  EXPECT_EQ(step(), (Work{0, 2}));  // the first sample ends
  EXPECT_EQ(step(), (Work{0, 1}));
  EXPECT_EQ(step(), (Work{0, 0}));  // idle
}

TEST(Generation, ALongPromptIsReadInPiecesOfAtMostAStepAndSaysTheSame) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.15));
  const auto run = [&](int64_t step_tokens, int64_t& most) {
    GenerationEngine engine(kConfig, {},
                            {.max_running_samples = 4, .max_step_tokens = step_tokens, .kv_block_size = 16, .kv_blocks = 60});
    for (uint64_t id = 0; id < 3; ++id) engine.submit(request_of(id, 100 + static_cast<int64_t>(id), 5));
    std::vector<SampleResult> results;
    while (!engine.idle()) {
      for (SampleResult& result : engine.step(weights)) results.push_back(std::move(result));
      const StepWork& work = engine.last_step();
      most = std::max(most, work.prompt_tokens + work.sampled_tokens);
    }
    std::ranges::sort(results, {}, &SampleResult::id);
    return results;
  };
  int64_t most_at_once = 0, most_in_pieces = 0;
  const std::vector<SampleResult> at_once = run(1000, most_at_once), in_pieces = run(16, most_in_pieces);
  EXPECT_GT(most_at_once, 300);
  EXPECT_LE(most_in_pieces, 16 + 1);  // the last token of a prompt is read, and one is sampled from it
  for (size_t i = 0; i < at_once.size(); ++i) {
    EXPECT_EQ(in_pieces[i].tokens, at_once[i].tokens);
    EXPECT_EQ(in_pieces[i].logprobs, at_once[i].logprobs);
  }
}

TEST(Generation, SamplesStartInTheOrderOfSubmission) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 2, .max_step_tokens = 8, .kv_block_size = 16, .kv_blocks = 40});
  for (uint64_t id = 0; id < 7; ++id) engine.submit(request_of(id, 4, 5));
  std::vector<uint64_t> order;
  while (!engine.idle())
    for (const SampleResult& result : engine.step(weights)) order.push_back(result.id);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Generation, ASampleWaitsUntilItsWorstCaseFitsTheCache) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 4, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 3});
  engine.submit(request_of(0, 16, 17));  // 32 cached tokens at worst: two blocks
  engine.submit(request_of(1, 16, 17));
  engine.step(weights);
  EXPECT_EQ(engine.running(), 1);
  EXPECT_EQ(engine.waiting(), 1);
  EXPECT_EQ(finish(engine, weights).size(), 2u);
  EXPECT_EQ(engine.take_kv_peak_bytes(), 2 * engine.backend().bytes_per_block());
}

TEST(Generation, ClearAbandonsEverythingAndFreesTheBlocks) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, kLimits);
  for (uint64_t id = 0; id < 9; ++id) engine.submit(request_of(id, 20, 30));
  engine.step(weights);
  EXPECT_GT(engine.kv_blocks().in_use(), 0);
  engine.clear();
  EXPECT_TRUE(engine.idle());
  EXPECT_EQ(engine.kv_blocks().in_use(), 0);
  EXPECT_TRUE(engine.step(weights).empty());
  engine.submit(request_of(1, 20, 3));
  EXPECT_EQ(finish(engine, weights)[0].tokens.size(), 3u);
}

TEST(Generation, NamesTheSampleWhoseLogitsAreNotFinite) {
  Weights weights = reference::random_weights(kConfig);
  weights.head[5].fill_(std::numeric_limits<float>::quiet_NaN());
  GenerationEngine engine(kConfig, {}, kLimits);
  engine.submit(request_of(41, 4, 5));
  const std::string message = user_error([&] { engine.step(PackedWeights(weights)); });
  EXPECT_THAT(message, HasSubstr("sample 41"));
  EXPECT_THAT(message, HasSubstr("logits are not finite"));
}

TEST(Generation, RefusesSamplesThatCanNeverRun) {
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 1, .max_step_tokens = 1, .kv_block_size = 16, .kv_blocks = 2});
  EXPECT_THAT(user_error([&] { engine.submit(request_of(1, 0, 5)); }), HasSubstr("sample 1 has an empty prompt"));
  EXPECT_THAT(user_error([&] { engine.submit(request_of(2, 4, 0)); }), HasSubstr("max_new_tokens must be at least 1"));
  EXPECT_THAT(user_error([&] { engine.submit(request_of(3, 100, 29)); }), HasSubstr("128 positions"));
  EXPECT_THAT(user_error([&] { engine.submit(request_of(4, 20, 14)); }), HasSubstr("may need 3 KV blocks"));
  SampleRequest foreign = request_of(5, 4, 4);
  foreign.prompt = std::vector<int64_t>{1, 2, 37, 4};
  EXPECT_THAT(user_error([&] { engine.submit(foreign); }), HasSubstr("token id 37 is outside the vocabulary of 37"));
  EXPECT_TRUE(engine.idle());
}

TEST(Generation, RefusesSamplesWhoseCachedAnglesWouldChange) {
  ModelConfig config = kConfig;
  config.rope.original_positions = 64;
  for (const auto& [scaling, name] : std::vector<std::pair<RopeScaling, std::string>>{{RopeScaling::kDynamic, "dynamic"},
                                                                                      {RopeScaling::kLongrope, "longrope"}}) {
    config.rope.scaling = scaling;
    config.rope.factor = 2;
    config.rope.short_factors = config.rope.long_factors = {1, 1, 1};
    GenerationEngine engine(config, {}, kLimits);
    engine.submit(request_of(1, 40, 24));
    const std::string message = user_error([&] { engine.submit(request_of(2, 40, 25)); });
    EXPECT_THAT(message, HasSubstr("sample 2: a prompt of 40 and 25 new tokens are more than the 64"));
    EXPECT_THAT(message, HasSubstr("\"" + name + "\""));
    EXPECT_THAT(message, HasSubstr("original_max_position_embeddings = 64"));
    EXPECT_THAT(message, HasSubstr("lower max_new_tokens"));
  }
  config.rope.scaling = RopeScaling::kLinear;
  GenerationEngine(config, {}, kLimits).submit(request_of(2, 40, 25));
}

TEST(Generation, ARunningSampleShowsItsTokensAsTheyAreSampled) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 1, .max_step_tokens = 4, .kv_block_size = 16, .kv_blocks = 40});
  engine.submit(request_of(7, 6, 3));
  engine.submit(request_of(8, 2, 1));
  std::vector<int64_t> seen;
  const auto show = [&] {
    EXPECT_TRUE(engine.step(weights).empty());
    const auto tokens = engine.sampled(7);
    seen.assign(tokens.begin(), tokens.end());
    return seen.size();
  };
  EXPECT_EQ(show(), 0u);  // a part of the prompt
  EXPECT_EQ(show(), 1u);
  EXPECT_EQ(show(), 2u);
  EXPECT_TRUE(engine.sampled(8).empty());  // it waits
  const std::span<SampleResult> results = engine.step(weights);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), results[0].tokens.begin()));
  EXPECT_TRUE(engine.sampled(7).empty());  // it has ended
}

TEST(Generation, RefusesLimitsThatCannotWork) {
  EXPECT_THAT(user_error([] { GenerationEngine(kConfig, {}, {8, 7, 16, 10}); }), HasSubstr("max_step_tokens = 7"));
  EXPECT_THAT(user_error([] { GenerationEngine(kConfig, {}, {0, 7, 16, 10}); }), HasSubstr("max_running_samples"));
  EXPECT_THAT(user_error([] { GenerationEngine(kConfig, {}, {1, 7, 10, 10}); }), HasSubstr("kv_block_size"));
  EXPECT_THAT(user_error([] { GenerationEngine(kConfig, {}, {1, 7, 16, 0}); }), HasSubstr("kv_blocks"));
}

}  // namespace
}  // namespace sluice::models::generation_test
