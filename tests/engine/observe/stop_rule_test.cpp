#include "engine/observe/stop_rule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::engine::stop_rule_test {
namespace {

// The iteration whose value ends the run; -1: none does.
int64_t stops_at(StopWhen when, const std::vector<double>& values) {
  when.metric = "score";
  StopRule rule(std::move(when));
  for (size_t i = 0; i < values.size(); ++i) rule.look_at(static_cast<int64_t>(i), values[i]);
  EXPECT_EQ(rule.decided_by().has_value(), !rule.reason().empty());
  return rule.decided_by().value_or(-1);
}

TEST(StopRule, EndsWhereTheMetricIsHighEnough) {
  EXPECT_EQ(stops_at({.at_least = 0.9}, {0.1, 0.89, 0.9, 0.2}), 2);
  EXPECT_EQ(stops_at({.at_least = 0.9}, {0.1, 0.89}), -1);
}

TEST(StopRule, EndsWhereTheMetricIsLowEnough) { EXPECT_EQ(stops_at({.at_most = 1.0}, {3, 2, 1, 0}), 2); }

TEST(StopRule, EndsAfterSoManyValuesWithoutABetterOne) {
  EXPECT_EQ(stops_at({.patience = 2}, {1, 3, 2, 4, 4, 4, 9}), 5);
  EXPECT_EQ(stops_at({.patience = 2}, {1, 2, 3, 4}), -1);
}

TEST(StopRule, LowerMayBeBetter) { EXPECT_EQ(stops_at({.patience = 2, .best = Best::kLowest}, {4, 3, 5, 6}), 3); }

TEST(StopRule, AnIterationWithoutTheMetricDoesNotCount) { EXPECT_EQ(stops_at({.patience = 2}, {1, NAN, NAN, 1, NAN, 1}), 5); }

// metrics.jsonl does not keep it, so a run that goes on would not see it.
TEST(StopRule, NorDoesAValueThatIsNotFinite) {
  EXPECT_EQ(stops_at({.patience = 2}, {1, INFINITY, 2, 3, 3, 3}), 5);
  EXPECT_EQ(stops_at({.at_least = 5.0}, {INFINITY, 6}), 1);
}

TEST(StopRule, TheWeightsBeforeTrainingAreOnlyToBeBettered) {
  StopRule enough({.metric = "score", .at_least = 0.5});
  enough.begin_with(0.9);
  EXPECT_FALSE(enough.decided_by());
  StopRule patient({.metric = "score", .patience = 2});
  patient.begin_with(0.9);
  for (const int64_t iteration : {1, 2}) patient.look_at(iteration, 0.8);
  EXPECT_EQ(patient.decided_by(), 2);
  EXPECT_EQ(patient.reason(), "score was not better than 0.9 for 2 values");
}

TEST(StopRule, SaysWhy) {
  StopRule rule({.metric = "held_out/score", .at_least = 0.95});
  rule.look_at(3, 0.96);
  EXPECT_EQ(rule.reason(), "held_out/score is 0.96, at least 0.95");
}

}  // namespace
}  // namespace sluice::engine::stop_rule_test
