#include "engine/contract/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace sluice::engine {
namespace {

TEST(MetricsRecorder, CombinesByKind) {
  MetricsRecorder metrics;
  Reducer reducer;
  metrics.mean("loss", 1, 1);
  metrics.mean("loss", 4, 2);
  metrics.mean("empty", std::nan(""), 0);
  for (const double score : {1.0, 0.0, 1.0, 0.0}) metrics.moments("score", score);
  metrics.maximum("ratio_max", -2);
  metrics.maximum("ratio_max", -3);
  const MetricRow row = metrics.take(reducer);
  EXPECT_THAT(row, testing::ElementsAre(testing::Pair("loss", 3), testing::Pair("score_mean", 0.5),
                                        testing::Pair("score_std", 0.5), testing::Pair("ratio_max", -2)));
  EXPECT_TRUE(metrics.take(reducer).empty());
}

TEST(MetricsRecorder, GivesWhatIsDeclaredInThatOrder) {
  MetricsRecorder metrics(
      {{"policy/loss", Metric::kMean, ""}, {"data/groups", Metric::kSum, ""}, {"policy/unused", Metric::kSum, ""}});
  Reducer reducer;
  metrics.sum("data/groups", 3);
  metrics.mean("policy/loss", 0.5);
  EXPECT_THAT(metrics.take(reducer), testing::ElementsAre(testing::Pair("policy/loss", 0.5), testing::Pair("data/groups", 3)));
}

TEST(MetricsRecorder, RefusesWhatIsNotDeclared) {
  MetricsRecorder metrics({{"policy/loss", Metric::kMean, ""}});
  EXPECT_THROW(metrics.mean("policy/lost", 1), UserError);
  EXPECT_THROW(metrics.sum("policy/loss", 1), UserError) << "it is a mean";
}

TEST(MetricsRecorder, TakesEveryNameOfAFamily) {
  MetricsRecorder metrics({{.name = "reward/score/", .is_family = true}});
  Reducer reducer;
  metrics.mean("reward/score/politeness", 1);
  EXPECT_THAT(metrics.take(reducer), testing::ElementsAre(testing::Pair("reward/score/politeness", 1)));
  EXPECT_THROW(metrics.mean("reward/politeness", 1), UserError);
}

// So that what depends on timing is known by its name, whatever stands in front.
TEST(MetricsRecorder, APrefixStandsInFrontOfTheGroupUnlessThatIsOfTiming) {
  MetricsRecorder metrics({{"reward/score", Metric::kMoments, ""}, {"memory/kv_bytes_max", Metric::kMaximum, ""}}, "held_out");
  Reducer reducer;
  metrics.moments("reward/score", 2);
  metrics.maximum("memory/kv_bytes_max", 5);
  EXPECT_THAT(metrics.take(reducer),
              testing::ElementsAre(testing::Pair("held_out/reward/score_mean", 2), testing::Pair("held_out/reward/score_std", 0),
                                   testing::Pair("memory/held_out/kv_bytes_max", 5)));
}

// Two processes that have recorded different things, and none, add up the same vectors.
class Lengths final : public Reducer {
 public:
  void sum(std::span<double> numbers) override { lengths.push_back(numbers.size()); }
  std::vector<size_t> lengths;
};

TEST(MetricsRecorder, ReducesOneLayoutWhateverWasRecorded) {
  MetricsRecorder metrics({{"policy/loss", Metric::kMean, ""}, {"data/groups", Metric::kSum, ""}});
  Lengths reducer;
  metrics.take(reducer);
  metrics.sum("data/groups", 1);
  metrics.take(reducer);
  EXPECT_THAT(reducer.lengths, testing::ElementsAre(6, 6));
}

}  // namespace
}  // namespace sluice::engine
