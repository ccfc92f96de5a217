#include "engine/observe/version_arrivals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/observe/engine_metrics.h"

namespace sluice::engine::version_arrivals_test {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// 2 GB that took 4 s. The rank brought half of them to a landing that it has in common, which takes 1 s on its link.
PublishedVersion version_of(int64_t number) {
  return {.version = number,
          .bytes = 2'000'000'000,
          .bytes_received = 1'000'000'000,
          .link_bytes_per_second = 1e9,
          .published_seconds = 4,
          .slowest_receiver = 3,
          .slowest_seconds = 0.5};
}

// NaN: it has none.
double of(const VersionArrivals::Rows& rows, const std::string& name) {
  for (const MetricRow* row : {&rows.of_rank, &rows.of_run})
    for (const auto& [other, value] : *row)
      if (other == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

TEST(VersionArrivals, AVersionTellsWhatItTook) {
  VersionArrivals arrivals;
  arrivals.opened(version_of(1), 10 * kSecond);
  const VersionArrivals::Rows rows = arrivals.take(1);
  EXPECT_EQ(of(rows, metrics::kWeightsBytes), 2e9);
  EXPECT_EQ(of(rows, metrics::kWeightsSeconds), 4);
  EXPECT_EQ(of(rows, metrics::kWeightsRate), 0.5);
  EXPECT_EQ(of(rows, metrics::kWeightsSlowest), 3);
  EXPECT_EQ(of(rows, metrics::kWeightsSlowestSeconds), 0.5);
  EXPECT_EQ(of(rows, metrics::kWeightsLinkShare), 0.25);
  EXPECT_EQ(of(rows, metrics::kWeightsStallSeconds), 0);
}

TEST(VersionArrivals, ARankStandsStillSinceItHasNothingLeftToSample) {
  VersionArrivals arrivals;
  arrivals.await(1, 9 * kSecond);
  arrivals.opened(version_of(1), 10 * kSecond);
  EXPECT_EQ(of(arrivals.take(1), metrics::kWeightsStallSeconds), 1);
}

// It was published at 6 s.
TEST(VersionArrivals, WhileAVersionIsTrainedNobodyStandsStillForItsWay) {
  VersionArrivals arrivals;
  arrivals.await(1, 2 * kSecond);
  arrivals.opened(version_of(1), 10 * kSecond);
  EXPECT_EQ(of(arrivals.take(1), metrics::kWeightsStallSeconds), 4);
}

TEST(VersionArrivals, OfSeveralModelsTheSlowestCountsAndBytesAreAdded) {
  VersionArrivals arrivals;
  arrivals.await(1, 8 * kSecond);
  PublishedVersion fast = version_of(1);
  fast.published_seconds = 1;
  fast.slowest_receiver = 2;
  arrivals.opened(version_of(1), 10 * kSecond);
  arrivals.opened(fast, 11 * kSecond);
  const VersionArrivals::Rows rows = arrivals.take(1);
  EXPECT_EQ(of(rows, metrics::kWeightsBytes), 4e9);
  EXPECT_EQ(of(rows, metrics::kWeightsSeconds), 4);
  EXPECT_EQ(of(rows, metrics::kWeightsSlowest), 3);
  EXPECT_EQ(of(rows, metrics::kWeightsStallSeconds), 2);
}

TEST(VersionArrivals, WhatWasNotReceivedOrIsTakenHasNamesAlone) {
  VersionArrivals arrivals;
  arrivals.opened(version_of(1), 10 * kSecond);
  arrivals.opened(version_of(2), 11 * kSecond);
  arrivals.take(2);
  for (const int64_t version : {0, 1, 2, 3}) {
    const VersionArrivals::Rows rows = arrivals.take(version);
    EXPECT_EQ(rows.of_rank.size(), 2u);
    EXPECT_EQ(rows.of_run.size(), 5u);
    EXPECT_TRUE(std::isnan(of(rows, metrics::kWeightsBytes)));
    EXPECT_TRUE(std::isnan(of(rows, metrics::kWeightsStallSeconds)));
  }
}

TEST(VersionArrivals, WithoutSecondsOrALinkThereIsNoRate) {
  VersionArrivals arrivals;
  arrivals.opened({.version = 1}, kSecond);
  const VersionArrivals::Rows rows = arrivals.take(1);
  EXPECT_TRUE(std::isnan(of(rows, metrics::kWeightsRate)));
  EXPECT_TRUE(std::isnan(of(rows, metrics::kWeightsLinkShare)));
  EXPECT_EQ(of(rows, metrics::kWeightsBytes), 0);
}

}  // namespace
}  // namespace sluice::engine::version_arrivals_test
