#include "engine/observe/over_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace sluice::engine::metrics::over_ranks_test {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Contribution of_two(const MetricRow& first, const MetricRow& second) {
  Contribution all = contribution_of(first);
  add_contribution(all, contribution_of(second));
  return all;
}

TEST(OverRanks, OneRankHasWhatItMeasured) {
  const MetricRow measured{{"time/train_seconds", 0.1}, {"memory/resident_bytes", 812e6}, {"engine/tokens_in_flight_max", 0}};
  EXPECT_EQ(row_over_ranks(contribution_of(measured), 1), measured);
}

TEST(OverRanks, SecondsAreTheMeanBesideTheLeastAndTheMost) {
  EXPECT_THAT(row_over_ranks(of_two({{"time/train_seconds", 3}}, {{"time/train_seconds", 1}}), 2),
              ElementsAre(Pair("time/train_seconds", 2), Pair("time/train_seconds/min", 1), Pair("time/train_seconds/max", 3)));
}

TEST(OverRanks, BytesAreTheMostBesideTheLeastAndTheMean) {
  EXPECT_THAT(row_over_ranks(of_two({{"memory/resident_bytes", 100}}, {{"memory/resident_bytes", 300}}), 2),
              ElementsAre(Pair("memory/resident_bytes", 300), Pair("memory/resident_bytes/min", 100),
                          Pair("memory/resident_bytes/mean", 200)));
}

TEST(OverRanks, WhatARankHasNoneOfCountsForNothing) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(row_over_ranks(of_two({{"time/x", kNone}, {"memory/y", kNone}}, {{"time/x", 3}, {"memory/y", kNone}}), 2),
              ElementsAre(Pair("time/x", 3), Pair("time/x/min", 3), Pair("time/x/max", 3)));
}

TEST(OverRanks, WhatIsOfTheRunHasOneName) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Contribution all = contribution_of({{"time/x", 1}}, {{"engine/y", kNone}, {"engine/z", kNone}});
  add_contribution(all, contribution_of({{"time/x", 2}}, {{"engine/y", 7}, {"engine/z", kNone}}));
  EXPECT_THAT(row_over_ranks(all, 2),
              ElementsAre(Pair("time/x", 1.5), Pair("time/x/min", 1), Pair("time/x/max", 2), Pair("engine/y", 7)));
}

TEST(OverRanks, NamesAreThoseOfTheRow) {
  for (const int ranks : {1, 2}) {
    const MetricRow row = row_over_ranks(contribution_of({{"time/x", 1}, {"memory/y", 2}}), ranks);
    std::vector<std::string> names = names_over_ranks("time/x", ranks);
    for (const std::string& name : names_over_ranks("memory/y", ranks)) names.push_back(name);
    ASSERT_EQ(row.size(), names.size());
    for (size_t i = 0; i < row.size(); ++i) EXPECT_EQ(row[i].first, names[i]);
  }
}

}  // namespace
}  // namespace sluice::engine::metrics::over_ranks_test
