#include "models/sample/drafts.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <vector>

#include "models/sample/generation.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::drafts_test {
namespace {

using Ids = std::vector<int64_t>;

Ids drafted(const Ids& prompt, const Ids& response, int64_t most) {
  Ids drafts;
  draft_by_ngram(prompt, response, most, drafts);
  return drafts;
}

TEST(Drafts, AreWhatStoodBehindTheLastPlaceWithTheLastTokens) {
  EXPECT_EQ(drafted({1, 2, 3, 4, 5, 6}, {9, 2, 3, 4}, 2), (Ids{5, 6}));
  EXPECT_EQ(drafted({1, 2, 3, 4, 7}, {1, 2, 3, 4, 8, 2, 3, 4}, 1), (Ids{8})) << "the last one of several";
  EXPECT_EQ(drafted({5, 3, 4, 7, 8}, {9, 3, 4}, 2), (Ids{7, 8})) << "of two tokens";
  EXPECT_EQ(drafted({2, 3, 4, 1}, {6, 3, 4, 5, 2, 3, 4}, 1), (Ids{1})) << "three before two, though they lie farther back";
  EXPECT_EQ(drafted({4, 7, 8}, {3, 4}, 2), Ids()) << "of one token alone";
}

TEST(Drafts, GoOverTheBorderOfPromptAndResponse) {
  EXPECT_EQ(drafted({9, 1, 2}, {3, 4, 1, 2, 3}, 3), (Ids{4, 1, 2}));
  EXPECT_EQ(drafted({1, 2, 3, 1, 2}, {}, 2), (Ids{3, 1}));
  EXPECT_EQ(drafted({}, {1, 2, 3, 1, 2}, 1), (Ids{3}));
}

TEST(Drafts, RepeatWhatRepeatsItself) {
  EXPECT_EQ(drafted({8}, {5, 5, 5}, 4), (Ids{5, 5, 5, 5}));
  EXPECT_EQ(drafted({}, {7, 1, 2, 1, 2, 1}, 5), (Ids{2, 1, 2, 1, 2}));
}

TEST(Drafts, OfShortTextsAreNone) {
  for (const Ids& text : {Ids(), Ids{1}, Ids{1, 1}, Ids{1, 2}}) EXPECT_EQ(drafted(text, {}, 3), Ids());
}

TEST(DraftLength, GrowsWhileAllIsRightAndRestsWhenLittleIs) {
  DraftLength length;
  EXPECT_EQ(length.next(64), 4);
  length.learn(4, 4);
  EXPECT_EQ(length.next(64), 8);
  length.learn(8, 4);
  EXPECT_EQ(length.next(64), 5);
  length.learn(5, 2);
  EXPECT_EQ(length.next(64), 0) << "less than half was right";
  EXPECT_EQ(length.next(64), 0);
  EXPECT_EQ(length.next(64), 3);
  length.learn(3, 2);
  EXPECT_EQ(length.next(2), 2);
  length.learn(2, 0);
  for (const int64_t steps : {2, 4, 8, 16, 32, 32}) {
    for (int64_t step = 0; step < steps; ++step) EXPECT_EQ(length.next(64), 0) << steps;
    EXPECT_EQ(length.next(64), 1) << steps;
    length.learn(1, 0);
  }
}

// A model with random weights soon says the same again and again, where it says the likeliest.
TEST(SpeculativeSampling, TakesFewerStepsForTextThatRepeatsItself) {
  at::manual_seed(1);  // not all do within so many tokens
  const ModelConfig config = reference::small_config();
  const PackedWeights weights(reference::random_weights(config));
  const auto steps_of = [&](const DraftLimits& drafts, uint64_t samples) {
    GenerationEngine engine(config, {}, {.max_running_samples = 2, .max_step_tokens = 32, .kv_blocks = 16, .drafts = drafts});
    for (uint64_t id = 0; id < samples; ++id)
      engine.submit({.id = id, .prompt = Ids{1, 2, 3}, .max_new_tokens = 110, .stream = RandomStream(1, id), .greedy = true});
    std::pair<int, Ids> steps{0, {}};
    while (!engine.idle()) {
      ++steps.first;
      for (const SampleResult& result : engine.step(weights)) steps.second = result.tokens;
    }
    return steps;
  };
  const auto alone = steps_of({}, 1), guessed = steps_of({.tokens = 8}, 1);
  EXPECT_EQ(alone.second, guessed.second);
  EXPECT_EQ(alone.first, 110);
  EXPECT_LT(guessed.first, alone.first);
  EXPECT_EQ(steps_of({.tokens = 8, .samples = 1}, 1).first, guessed.first);
  EXPECT_EQ(steps_of({.tokens = 8, .samples = 1}, 2).first, steps_of({}, 2).first) << "one is not alone";
}

}  // namespace
}  // namespace sluice::models::drafts_test
