#include "engine/schedule/rollout/rollout_tail.h"

#include <gtest/gtest.h>

namespace sluice::engine::rollout_tail_test {
namespace {

TEST(RolloutTail, CountsStepsOfAFewSamplesBehindTheLastGroup) {
  RolloutTail tail;
  tail.begin_iteration();
  tail.step(16, /*all_groups_are_in=*/false, 10);
  tail.step(3, false, 10);  // others wait for credit
  tail.step(16, true, 10);
  tail.step(4, true, 10);  // a quarter
  EXPECT_EQ(tail.take_ns(), 0);
  tail.step(3, true, 10);
  tail.step(1, true, 15);
  EXPECT_EQ(tail.samples(), 1);
  EXPECT_EQ(tail.take_ns(), 25);
  EXPECT_EQ(tail.take_ns(), 0);
}

TEST(RolloutTail, OfAnIterationKnowsNothingOfTheOneBefore) {
  RolloutTail tail;
  tail.begin_iteration();
  tail.step(64, true, 10);
  tail.begin_iteration();
  tail.step(4, true, 10);
  EXPECT_EQ(tail.take_ns(), 0);
}

// A step that only reads prompts gives no sample a token.
TEST(RolloutTail, IsNoStepWithoutSamples) {
  RolloutTail tail;
  tail.begin_iteration();
  tail.step(64, true, 10);
  tail.step(0, true, 10);
  EXPECT_EQ(tail.take_ns(), 0);
}

}  // namespace
}  // namespace sluice::engine::rollout_tail_test
