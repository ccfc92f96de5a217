#include "engine/checkpoint/checkpoint_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice::engine::checkpoint_schedule_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> saved(int64_t every, int64_t iterations) {
  Plan plan;
  plan.checkpoint.every_iterations = every;
  plan.pipeline.iterations = iterations;
  std::vector<int64_t> behind;
  for (int64_t i = 0; i < iterations; ++i) {
    if (saved_by_count(plan, i)) behind.push_back(i);
  }
  return behind;
}

TEST(SavedByCount, LeavesTheLastIterationToTheEndOfTheRun) {
  EXPECT_THAT(saved(2, 6), ElementsAre(1, 3));
  EXPECT_THAT(saved(2, 7), ElementsAre(1, 3, 5));
  EXPECT_THAT(saved(6, 6), IsEmpty());
  EXPECT_THAT(saved(0, 6), IsEmpty());
}

}  // namespace
}  // namespace sluice::engine::checkpoint_schedule_test
