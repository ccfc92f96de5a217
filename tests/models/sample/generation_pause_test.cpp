#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"
#include "tests/models/sample/requests.h"

namespace sluice::models::generation_pause_test {
namespace {

const ModelConfig kConfig = reference::small_config();

// All samples of an engine, in the order in which they end.
std::vector<SampleResult> finished(GenerationEngine& engine, const PackedWeights& weights) {
  std::vector<SampleResult> results;
  while (!engine.idle()) {
    for (SampleResult& result : engine.step(weights)) results.push_back(std::move(result));
  }
  return results;
}

// Pauses each sample when it has `at` tokens, and gives it `given` some steps later.
std::vector<SampleResult> played(const std::vector<SampleRequest>& requests, const PackedWeights& weights,
                                 GenerationLimits limits, const std::vector<int64_t>& given, int64_t steps_of_pause) {
  constexpr size_t kAt = 5;
  GenerationEngine engine(kConfig, {.sampling = {.temperature = 0.8}}, limits);
  std::map<uint64_t, int64_t> paused;  // steps that are left
  engine.set_judge([&](uint64_t id, std::span<const int64_t> tokens) {
    if (tokens.size() != kAt) return Next::kGoesOn;
    paused[id] = steps_of_pause * (1 + static_cast<int64_t>(id % 3));
    return Next::kPauses;
  });
  for (const SampleRequest& r : requests) engine.submit(r);
  std::vector<SampleResult> results;
  while (!engine.idle()) {
    for (SampleResult& result : engine.step(weights)) results.push_back(std::move(result));
    for (auto next = paused.begin(); next != paused.end();) {
      if (next->second-- > 0) {
        ++next;
        continue;
      }
      engine.resume(next->first, given);
      next = paused.erase(next);
    }
  }
  EXPECT_EQ(engine.kv_blocks().in_use(), 0);
  std::ranges::sort(results, {}, &SampleResult::id);
  return results;
}

TEST(GenerationPause, LogProbabilitiesBehindWhatWasGivenAreThoseOfTheDenseModel) {
  const Weights weights = reference::random_weights(kConfig, 0.15);
  const PackedWeights packed(weights);
  const std::vector<int64_t> given{4, 9, 2, 30};
  for (const SampleResult& result : played({request_of(1, 6, 20), request_of(2, 3, 20)}, packed, kLimits, given, 2)) {
    ASSERT_EQ(result.tokens.size(), 20u);
    ASSERT_EQ(result.logprobs.size(), 16u);
    ASSERT_EQ(result.given.size(), 1u);
    EXPECT_EQ(result.given[0].begin, 5);
    EXPECT_EQ(result.given[0].end, 9);
    EXPECT_TRUE(std::equal(given.begin(), given.end(), result.tokens.begin() + 5));
    std::vector<int64_t> tokens = prompt_of(result.id, result.id == 1 ? 6 : 3);
    const int64_t first = static_cast<int64_t>(tokens.size()) - 1;
    tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
    const at::Tensor logprobs = at::log_softmax(reference::logits(kConfig, weights, tokens) / 0.8, 1);
    for (int64_t i = 0, action = 0; i < 20; ++i) {
      if (i >= 5 && i < 9) continue;
      const float expected = logprobs[first + i][result.tokens[static_cast<size_t>(i)]].item<float>();
      EXPECT_NEAR(result.logprobs[static_cast<size_t>(action++)], expected, 1e-4) << i;
    }
  }
}

TEST(GenerationPause, HowLongASampleWaitsAndBesideWhomChangesNothing) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.15));
  std::vector<SampleRequest> requests;
  for (uint64_t id = 0; id < 9; ++id) requests.push_back(request_of(id, 1 + static_cast<int64_t>(id) * 4, 30));
  const std::vector<int64_t> given{7, 7, 1};
  const auto at_once = played(requests, weights, kLimits, given, 0);
  const GenerationLimits narrow{.max_running_samples = 2, .max_step_tokens = 3, .kv_block_size = 32, .kv_blocks = 5};
  for (const auto& other : {played(requests, weights, kLimits, given, 7), played(requests, weights, narrow, given, 3)}) {
    ASSERT_EQ(other.size(), at_once.size());
    for (size_t i = 0; i < other.size(); ++i) {
      EXPECT_EQ(other[i].tokens, at_once[i].tokens);
      EXPECT_EQ(other[i].logprobs, at_once[i].logprobs);  // to the bit
    }
  }
}

TEST(GenerationPause, WithoutTokensASampleGoesOnAsIfItHadNotPaused) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.15));
  GenerationEngine engine(kConfig, {.sampling = {.temperature = 0.8}}, kLimits);
  engine.submit(request_of(3, 5, 20));
  const std::vector<SampleResult> results = finished(engine, weights);
  const auto paused = played({request_of(3, 5, 20)}, weights, kLimits, {}, 2);
  EXPECT_EQ(paused[0].tokens, results[0].tokens);
  EXPECT_EQ(paused[0].logprobs, results[0].logprobs);
  EXPECT_TRUE(paused[0].given.empty());
}

TEST(GenerationPause, APausedSampleHoldsItsPlaceAndCostsNothing) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, {.max_running_samples = 1, .max_step_tokens = 64, .kv_block_size = 16, .kv_blocks = 40});
  engine.set_judge([](uint64_t id, std::span<const int64_t>) { return id == 1 ? Next::kPauses : Next::kEnds; });
  engine.submit(request_of(1, 4, 10));
  engine.submit(request_of(2, 4, 10));
  engine.step(weights);
  EXPECT_TRUE(engine.step(weights).empty());
  EXPECT_EQ(engine.last_step().prompt_tokens + engine.last_step().sampled_tokens, 0);
  EXPECT_EQ(engine.waiting(), 1);

  EXPECT_EQ(engine.end(1).tokens.size(), 1u);
  const auto results = engine.step(weights);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].id, 2u);
  EXPECT_EQ(results[0].finish, FinishReason::kStopped);
  EXPECT_EQ(engine.kv_blocks().in_use(), 0);
}

TEST(GenerationPause, WhatIsGivenMustLeaveRoomAndBeOfTheVocabulary) {
  const PackedWeights weights(reference::random_weights(kConfig));
  GenerationEngine engine(kConfig, {}, kLimits);
  engine.set_judge([](uint64_t, std::span<const int64_t>) { return Next::kPauses; });
  engine.submit(request_of(1, 4, 5));
  EXPECT_THROW(engine.resume(1, {}), InternalError);  // it has not paused
  engine.step(weights);
  EXPECT_THROW(engine.resume(1, std::vector<int64_t>(4, 1)), InternalError);
  EXPECT_THROW(engine.resume(1, std::vector<int64_t>{kConfig.vocab_size}), UserError);
  engine.resume(1, std::vector<int64_t>(3, 1));
  EXPECT_TRUE(engine.step(weights).empty());  // the last token: it pauses again
  EXPECT_EQ(engine.end(1).tokens.size(), 5u);
}

TEST(GenerationPause, AGreedySampleTakesTheLikeliestTokensBesideOthersThatDoNot) {
  const PackedWeights weights(reference::random_weights(kConfig, 0.15));
  GenerationEngine greedy(kConfig, {.sampling = {.temperature = 0}}, kLimits), mixed(kConfig, {}, kLimits);
  greedy.submit(request_of(1, 6, 20));
  SampleRequest likeliest = request_of(1, 6, 20);
  likeliest.greedy = true;
  mixed.submit(likeliest);
  mixed.submit(request_of(2, 6, 20));
  const std::vector<SampleResult> expected = finished(greedy, weights);
  std::vector<SampleResult> results = finished(mixed, weights);
  std::ranges::sort(results, {}, &SampleResult::id);
  EXPECT_EQ(results[0].tokens, expected[0].tokens);
  EXPECT_EQ(results[0].logprobs, expected[0].logprobs);
  EXPECT_NE(results[1].tokens, expected[0].tokens);
}

}  // namespace
}  // namespace sluice::models::generation_pause_test
