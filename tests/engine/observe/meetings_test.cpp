#include "engine/observe/meetings.h"

#include <gtest/gtest.h>

namespace sluice::engine::meetings_test {
namespace {

Meeting meeting(int64_t iteration, int64_t came_ns, int64_t went_on_ns) {
  return {.executor = 1, .node = 4, .iteration = iteration, .number = 2, .came_ns = came_ns, .went_on_ns = went_on_ns};
}

TEST(Meetings, HaveAnArrowFromTheLastThatCameToEachThatWaited) {
  Meetings meetings(3);
  EXPECT_TRUE(meetings.add(2, meeting(7, 10, 55)).empty());
  EXPECT_TRUE(meetings.add(0, meeting(7, 50, 51)).empty());
  const auto arrows = meetings.add(1, meeting(7, 20, 60));
  ASSERT_EQ(arrows.size(), 2u);
  for (const Meetings::Arrow& arrow : arrows) {
    EXPECT_EQ(arrow.from.rank, 0);
    EXPECT_EQ(arrow.from.ns, 50);
    EXPECT_EQ(arrow.to.executor, 1);
  }
  EXPECT_EQ(arrows[0].to.rank, 1);
  EXPECT_EQ(arrows[0].to.ns, 60);
  EXPECT_EQ(arrows[1].to.rank, 2);
  EXPECT_EQ(arrows[1].to.ns, 55);
}

// As where there was nothing to bring: nobody waits.
TEST(Meetings, HaveNoArrowToWhoWentOnBeforeTheLastCame) {
  Meetings meetings(2);
  meetings.add(0, meeting(7, 10, 11));
  EXPECT_TRUE(meetings.add(1, meeting(7, 20, 21)).empty());
}

TEST(Meetings, OfSeveralIterationsAreApart) {
  Meetings meetings(2);
  meetings.add(0, meeting(7, 10, 30));
  EXPECT_TRUE(meetings.add(1, meeting(8, 20, 30)).empty());
  EXPECT_EQ(meetings.add(1, meeting(7, 20, 30)).size(), 1u);
}

// A rank that is lost never tells.
TEST(Meetings, ThatNeverCompleteAreForgotten) {
  Meetings meetings(2);
  for (int64_t iteration = 0; iteration < 100'000; ++iteration) meetings.add(0, meeting(iteration, 10, 30));
  EXPECT_TRUE(meetings.add(1, meeting(0, 20, 30)).empty());
  EXPECT_EQ(meetings.add(1, meeting(99'999, 20, 30)).size(), 1u);
}

}  // namespace
}  // namespace sluice::engine::meetings_test
