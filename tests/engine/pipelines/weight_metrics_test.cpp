#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/check/check.h"
#include "engine/observe/engine_metrics.h"
#include "engine/observe/over_ranks.h"
#include "tests/engine/ranks/ranks_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"

// What the lines of metrics.jsonl tell of the weights that ranks send to each other.
namespace sluice::engine::weight_metrics_test {
namespace {

std::optional<double> metric_of(const MetricRow& line, const std::string& name) {
  const auto found = std::ranges::find(line, name, &MetricRow::value_type::first);
  return found == line.end() ? std::nullopt : std::optional(found->second);
}

class WeightMetrics : public ::testing::TestWithParam<int64_t> {  // the policy lag
 protected:
  WeightMetrics() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  Plan plan_of(const toy::RanksShape& shape) {
    CheckResult checked = check(toy::ranks_pipeline(shape, 1), registry_);
    EXPECT_TRUE(checked.plan) << render(checked.problems);
    return std::move(*checked.plan);
  }

  Registry registry_;
};

// Each line has them that is of an iteration which was sampled with a version that was sent, whatever the timing.
TEST_P(WeightMetrics, AreOfTheVersionThatTheIterationSampledWith) {
  const Plan plan =
      plan_of({.groups = 6, .lag = GetParam(), .iterations = 6, .pause_us = 60, .training_ranks = 2, .sampling_ranks = 2});
  for (uint64_t seed = 0; seed < 10; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<testing::RankOutcome> outcomes = testing::run_ranks(plan, seed, 200);
    for (size_t rank = 0; rank < 2; ++rank) {  // those that train
      const testing::RankOutcome& outcome = outcomes[rank];
      ASSERT_EQ(outcome.lines.size(), 6u);
      for (int64_t iteration = 0; iteration < 6; ++iteration) {
        const MetricRow& line = outcome.lines[static_cast<size_t>(iteration)];
        const bool was_sent = plan.main_path().version_for(iteration) > 0;
        for (const char* name :
             {metrics::kWeightsStallSeconds, metrics::kWeightsLinkShare, metrics::kWeightsSeconds, metrics::kWeightsRate,
              metrics::kWeightsSlowestSeconds, metrics::kWeightsBytes, metrics::kWeightsSlowest})
          EXPECT_EQ(metric_of(line, name).has_value(), was_sent) << name << " of iteration " << iteration;
        if (!was_sent) continue;
        EXPECT_EQ(metric_of(line, metrics::kWeightsBytes), 8);
        EXPECT_THAT(*metric_of(line, metrics::kWeightsSlowest), ::testing::AnyOf(2, 3));
        const double stall = *metric_of(line, std::string(metrics::kWeightsStallSeconds) + "/max");
        const double seconds = *metric_of(line, metrics::kWeightsSeconds);
        EXPECT_GE(stall, 0);
        EXPECT_LE(stall, seconds + 1e-9);  // nanoseconds are whole
        EXPECT_LE(*metric_of(line, metrics::kWeightsSlowestSeconds), seconds);
      }
    }
  }
}

TEST_P(WeightMetrics, HaveNamesThatThePlanKnowsAndThatTellOfTiming) {
  const Plan plan = plan_of({.lag = GetParam(), .iterations = 4, .training_ranks = 1, .sampling_ranks = 1});
  const std::vector<std::string> known = metrics::all_names(plan);
  const auto outcomes = testing::run_ranks(plan, 1, 0);
  for (const auto& [name, value] : outcomes[0].lines.back()) {
    if (name.find("/weights_") == std::string::npos) continue;
    EXPECT_TRUE(depends_on_timing(name)) << name;
    EXPECT_NE(std::ranges::find(known, name), known.end()) << name;
  }
}

TEST_P(WeightMetrics, AreNotThereWhereEveryRankTrains) {
  const toy::RanksShape shape{.lag = GetParam(), .iterations = 4};
  const CheckResult checked = check(toy::ranks_pipeline(shape, 1), registry_, 2);
  ASSERT_TRUE(checked.plan) << render(checked.problems);
  const auto outcomes = testing::run_ranks(*checked.plan, 1, 0);
  for (const MetricRow& line : outcomes[0].lines) EXPECT_EQ(metric_of(line, metrics::kWeightsBytes), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Lags, WeightMetrics, ::testing::Values(0, 1, 2));

}  // namespace
}  // namespace sluice::engine::weight_metrics_test
