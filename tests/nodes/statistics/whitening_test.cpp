#include "nodes/statistics/whitening.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/nodes/node_harness.h"

namespace sluice::nodes::whitening_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> whitened(std::vector<float> values, const WhiteningParams& options = {}, const std::vector<float>& mask = {}) {
  ExactMoments sums;
  add_moments({values}, {mask}, sums);
  whiten({values}, sums, options);
  return values;
}

WhiteningParams with(void (*set)(WhiteningParams&)) {
  WhiteningParams params;
  set(params);
  return params;
}

// 1, 3: mean 2, squared deviations 1 + 1.
TEST(Whitening, BesselDividesByOneLess) { EXPECT_THAT(whitened({1, 3}), Near({-0.7071068, 0.7071068})); }

TEST(Whitening, BiasedDividesByTheCount) {
  const auto params = with([](WhiteningParams& p) { p.whiten_variance = Variance::kBiased; });
  EXPECT_THAT(whitened({1, 3}, params), Near({-1, 1}));
}

TEST(Whitening, EpsilonIsUnderTheRoot) {
  const auto params = with([](WhiteningParams& p) { p.whiten_epsilon = 2; });
  EXPECT_THAT(whitened({1, 3}, params), Near({-0.5, 0.5}));  // variance 2
}

TEST(Whitening, TheMeanMayStay) {
  const auto params = with([](WhiteningParams& p) { p.whiten_mean = false; });
  EXPECT_THAT(whitened({1, 3}, params), Near({2 - 0.7071068, 2 + 0.7071068}));
  EXPECT_THAT(whitened({5}, params), Near({5}));
}

// (5.5 + 1.5) / 2 = 3.5, variance 8: the case of SkyRL.
TEST(Whitening, MaskedEntriesAreMovedButDoNotCount) {
  EXPECT_THAT(whitened({5.5, 4, 1.5}, {}, {1, 0, 1}), Near({0.7071068, 0.1767767, -0.7071068}));
}

TEST(Whitening, WeightsCountLikeRepeatedEntries) {
  EXPECT_THAT(whitened({1, 4}, {}, {2, 1}), Near({whitened({1, 1, 4})[0], whitened({1, 1, 4})[2]}));
}

TEST(Whitening, NanCountsOnlyWhereTheMaskIsNotZero) {
  EXPECT_THAT(whitened({1, kNan, 3}, {}, {1, 0, 1}), Near({-0.7071068, kNan, 0.7071068}));
  EXPECT_THAT(whitened({1, kNan, 3}), Near({kNan, kNan, kNan}));
}

TEST(Whitening, WithoutAnythingThatCountsNothingChanges) {
  EXPECT_THAT(whitened({1, 3}, {}, {0, 0}), Near({1, 3}));
  EXPECT_TRUE(whitened({}).empty());
}

TEST(Whitening, EqualEntriesAreZeroAlsoWithoutAnEpsilon) {
  const auto params = with([](WhiteningParams& p) { p.whiten_epsilon = 0; });
  EXPECT_THAT(whitened({2, 2, 2}, params), Near({0, 0, 0}));
}

TEST(Whitening, MomentsAreThoseOfAllRanks) {
  std::vector<float> values{1, 3}, of_another{5, 9};
  ExactMoments sums;
  add_moments({values, of_another}, {}, sums);
  whiten({values}, sums);
  const std::vector<float> together = whitened({1, 3, 5, 9});
  EXPECT_EQ(values, std::vector<float>(together.begin(), together.begin() + 2));
}

}  // namespace
}  // namespace sluice::nodes::whitening_test
