#include "comm/weights/arrival_rate.h"

#include <gtest/gtest.h>

namespace sluice::comm::arrival_rate_test {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

ArrivalRate rate_of(std::initializer_list<std::pair<double, size_t>> arrivals) {
  ArrivalRate rate;
  for (const auto& [seconds, bytes] : arrivals) rate.add(seconds, bytes);
  return rate;
}

TEST(ArrivalRate, OfASmallVersionAllButTheFirstPieceCounts) {
  EXPECT_DOUBLE_EQ(rate_of({{1, 100}, {2, 100}, {2, 100}, {5, 200}}).fastest(), 100);
}

TEST(ArrivalRate, WithOnePieceOrAllAtOnceItIsNotKnown) {
  EXPECT_EQ(rate_of({}).fastest(), 0);
  EXPECT_EQ(rate_of({{1, 100}}).fastest(), 0);
  EXPECT_EQ(rate_of({{1, 100}, {1, 100}}).fastest(), 0);
}

// 64 MiB: at 4 MiB a second, but for 16 MiB that came in one second.
TEST(ArrivalRate, TheFastestStretchCounts) {
  ArrivalRate rate;
  double seconds = 0;
  for (int piece = 0; piece <= 16; ++piece) {
    rate.add(seconds, 4 * kMiB);
    seconds += piece >= 8 && piece < 12 ? 0.25 : 1;
  }
  EXPECT_DOUBLE_EQ(rate.fastest(), 16.0 * kMiB);
}

// Two pieces that are complete at the same moment are no fast link.
TEST(ArrivalRate, ABurstIsNotTheLink) {
  ArrivalRate rate;
  for (int piece = 0; piece <= 16; ++piece) rate.add(2.0 * (piece / 2), 4 * kMiB);
  EXPECT_LE(rate.fastest(), 16.0 * kMiB / 3);
}

// 256 MiB: an eighth is 32.
TEST(ArrivalRate, OfALargeVersionAnEighthCounts) {
  ArrivalRate rate;
  double seconds = 0;
  for (int piece = 0; piece <= 64; ++piece) {
    rate.add(seconds, 4 * kMiB);
    seconds += piece >= 20 && piece < 24 ? 0.5 : 1;
  }
  EXPECT_DOUBLE_EQ(rate.fastest(), 32.0 * kMiB / 6);
}

}  // namespace
}  // namespace sluice::comm::arrival_rate_test
