#include "engine/contract/world/outside_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace sluice::engine::outside_work_test {
namespace {

using std::chrono::milliseconds;
using ::testing::StartsWith;

TEST(OutsideWork, TheOldestCallOfANodeIsSaidWhileItIsUnderWay) {
  OutsideWork work;
  EXPECT_EQ(work.waits_for("draw"), "");
  std::optional<OutsideCall> first(std::in_place, &work, "draw", "the first reply");
  const OutsideCall second(&work, "draw", "the second reply"), of_another(&work, "judge", "a verdict");
  EXPECT_THAT(work.waits_for("draw"), StartsWith("the first reply, for 0"));
  first.reset();
  EXPECT_THAT(work.waits_for("draw"), StartsWith("the second reply, for 0"));
}

TEST(OutsideWork, WhoWaitsForCallsWaitsNoLongerThanIsSaid) {
  OutsideWork work;
  EXPECT_TRUE(work.wait_for_calls(milliseconds(0)));
  std::optional<OutsideCall> call(std::in_place, &work, "draw", "a reply");
  EXPECT_FALSE(work.wait_for_calls(milliseconds(10)));
  const std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(10));
    call.reset();
  });
  EXPECT_TRUE(work.wait_for_calls(milliseconds(60'000)));
}

}  // namespace
}  // namespace sluice::engine::outside_work_test
