#include "comm/parcels/stall_watch.h"

#include <gtest/gtest.h>

namespace sluice::comm::stall_watch_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StallWatchTest : public ::testing::Test {
 protected:
  // So much later.
  StallWatch::Clock::duration look(milliseconds later, uint64_t got_there, bool has_left) {
    now_ += later;
    return watch_.look(got_there, has_left, now_);
  }

  StallWatch watch_;
  StallWatch::Clock::time_point now_{seconds(100)};
};

TEST_F(StallWatchTest, CountsWhileNothingGetsThere) {
  EXPECT_EQ(look(seconds(0), 5, true), seconds(0));
  EXPECT_EQ(look(seconds(1), 5, true), seconds(1));
  EXPECT_EQ(look(seconds(1), 5, true), seconds(2));
}

TEST_F(StallWatchTest, BeginsAnewWhenSomethingDoes) {
  look(seconds(0), 5, true);
  look(seconds(1), 5, true);
  EXPECT_EQ(look(seconds(1), 6, true), seconds(0));
  EXPECT_EQ(look(seconds(1), 6, true), seconds(1));
}

TEST_F(StallWatchTest, AConnectionWithNothingToSendDoesNotStandStill) {
  look(seconds(0), 5, false);
  EXPECT_EQ(look(seconds(1), 5, false), seconds(0));
  EXPECT_EQ(look(seconds(1), 5, true), seconds(0));  // since when is not known
  EXPECT_EQ(look(seconds(1), 5, true), seconds(1));
  EXPECT_EQ(look(seconds(1), 5, false), seconds(0));
}

TEST_F(StallWatchTest, TimeInWhichTheProcessWasStoppedCountsLittle) {
  look(seconds(0), 5, true);
  EXPECT_EQ(look(seconds(3600), 5, true), seconds(2));
}

}  // namespace
}  // namespace sluice::comm::stall_watch_test
