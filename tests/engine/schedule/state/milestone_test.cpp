#include "engine/schedule/state/milestone.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/schedule/state/version_gate.h"

namespace sluice::engine::milestone_test {
namespace {

TEST(Milestone, RunsAtOnceWhatWasReached) {
  Milestone milestone;
  bool ran = false;
  milestone.when_reached(0, [&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(Milestone, RunsWhatWaitsInOrderOfCountAndArrival) {
  Milestone milestone;
  std::vector<std::string> ran;
  milestone.when_reached(2, [&] { ran.push_back("2a"); });
  milestone.when_reached(1, [&] { ran.push_back("1"); });
  milestone.when_reached(2, [&] { ran.push_back("2b"); });
  milestone.when_reached(3, [&] { ran.push_back("3"); });
  milestone.reach(2);
  EXPECT_THAT(ran, ::testing::ElementsAre("1", "2a", "2b"));
  milestone.reach(3);
  EXPECT_THAT(ran, ::testing::ElementsAre("1", "2a", "2b", "3"));
}

TEST(Milestone, DoesNotGoBackAndLetsEverythingThroughWhenAbandoned) {
  Milestone milestone;
  int ran = 0;
  milestone.when_reached(7, [&] { ++ran; });
  milestone.abandon();
  EXPECT_EQ(ran, 1);
  milestone.reach(3);
  milestone.when_reached(8, [&] { ++ran; });
  EXPECT_EQ(ran, 2);
}

TEST(VersionGate, HasWhatWasPublishedAndTells) {
  int told = 0;
  VersionGate gate([&] { ++told; });
  EXPECT_TRUE(gate.has(0));
  EXPECT_FALSE(gate.has(1));
  gate.publish(1);
  EXPECT_TRUE(gate.has(1));
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace sluice::engine::milestone_test
