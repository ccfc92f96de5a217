#include "nodes/advantages/adaptive_kl.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace sluice::nodes::adaptive_kl_test {
namespace {

// error = 7.2 / 6 - 1 = 0.2 at most; 256 of 10000 samples.
TEST(AdaptiveKl, FollowsTheErrorWithinItsBounds) {
  const AdaptiveKl controller({.initial = 0.2, .target = 6, .horizon = 10000});
  EXPECT_DOUBLE_EQ(controller.next(0.5, 6, 256), 0.5);
  EXPECT_NEAR(controller.next(0.5, 6.6, 256), 0.5 * (1 + 0.1 * 0.0256), 1e-12);
  EXPECT_NEAR(controller.next(0.5, 600, 256), 0.5 * (1 + 0.2 * 0.0256), 1e-12);
  EXPECT_NEAR(controller.next(0.5, -3, 256), 0.5 * (1 - 0.2 * 0.0256), 1e-12);
}

TEST(AdaptiveKl, RefusesWhatWouldTurnThePenaltyIntoAReward) {
  const AdaptiveKl controller({.initial = 0.2, .target = 6, .horizon = 100});
  EXPECT_THROW(controller.next(0.5, 0, 500), UserError);
  EXPECT_THROW(controller.next(0.5, std::nan(""), 10), UserError);
}

}  // namespace
}  // namespace sluice::nodes::adaptive_kl_test
