#include "engine/contract/world/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/contract/world/totals.h"

namespace sluice::engine::metrics_test {
namespace {

TEST(MetricsRecorder, CombinesByKind) {
  MetricsRecorder metrics;
  metrics.mean("loss", 1, 1);
  metrics.mean("loss", 4, 2);
  metrics.mean("empty", std::nan(""), 0);
  for (const double score : {1.0, 0.0, 1.0, 0.0}) metrics.moments("score", score);
  metrics.maximum("ratio_max", -2);
  metrics.maximum("ratio_max", -3);
  const MetricRow row = metrics.take();
  EXPECT_THAT(row, ::testing::ElementsAre(::testing::Pair("loss", 3), ::testing::Pair("score_mean", 0.5),
                                          ::testing::Pair("score_std", 0.5), ::testing::Pair("ratio_max", -2)));
  EXPECT_TRUE(metrics.take().empty());
}

TEST(MetricsRecorder, GivesWhatIsDeclaredInThatOrder) {
  MetricsRecorder metrics(
      {{"policy/loss", Metric::kMean, ""}, {"data/groups", Metric::kSum, ""}, {"policy/unused", Metric::kSum, ""}});
  metrics.sum("data/groups", 3);
  metrics.mean("policy/loss", 0.5);
  EXPECT_THAT(metrics.take(), ::testing::ElementsAre(::testing::Pair("policy/loss", 0.5), ::testing::Pair("data/groups", 3)));
}

TEST(MetricsRecorder, RefusesWhatIsNotDeclared) {
  MetricsRecorder metrics({{"policy/loss", Metric::kMean, ""}});
  EXPECT_THROW(metrics.mean("policy/lost", 1), UserError);
  EXPECT_THROW(metrics.sum("policy/loss", 1), UserError) << "it is a mean";
}

TEST(MetricsRecorder, TakesEveryNameOfAFamily) {
  MetricsRecorder metrics({{.name = "reward/score/", .is_family = true}});
  metrics.mean("reward/score/politeness", 1);
  EXPECT_THAT(metrics.take(), ::testing::ElementsAre(::testing::Pair("reward/score/politeness", 1)));
  EXPECT_THROW(metrics.mean("reward/politeness", 1), UserError);
}

// So that what depends on timing is known by its name, whatever stands in front.
TEST(MetricsRecorder, APrefixStandsInFrontOfTheGroupUnlessThatIsOfTiming) {
  MetricsRecorder metrics({{"reward/score", Metric::kMoments, ""}, {"memory/kv_bytes_max", Metric::kMaximum, ""}}, "held_out");
  metrics.moments("reward/score", 2);
  metrics.maximum("memory/kv_bytes_max", 5);
  EXPECT_THAT(metrics.take(), ::testing::ElementsAre(::testing::Pair("held_out/reward/score_mean", 2),
                                                     ::testing::Pair("held_out/reward/score_std", 0),
                                                     ::testing::Pair("memory/held_out/kv_bytes_max", 5)));
}

std::vector<std::string> names_of(const Contribution& contribution) {
  std::vector<std::string> names;
  for (const Part& part : contribution) names.push_back(part.name);
  return names;
}

// Two ranks that have recorded different things, and none.
TEST(MetricsRecorder, ContributesOneLayoutWhateverWasRecorded) {
  MetricsRecorder metrics({{"policy/loss", Metric::kMean, ""}, {"data/groups", Metric::kSum, ""}});
  const auto layout = ::testing::ElementsAre("policy/loss", "data/groups");
  EXPECT_THAT(names_of(metrics.contribution()), layout);
  metrics.sum("data/groups", 1);
  EXPECT_THAT(names_of(metrics.contribution()), layout);
}

// What two ranks have recorded is what one records that has seen all.
TEST(MetricsRecorder, TheRowOfTwoRanksIsThatOfOne) {
  const std::vector<MetricSpec> declared{{"policy/loss", Metric::kMean, ""},
                                         {"reward/score", Metric::kMoments, ""},
                                         {"data/groups", Metric::kSum, ""},
                                         {"policy/ratio_max", Metric::kMaximum, ""},
                                         {"policy/learning_rate", Metric::kValue, ""},
                                         {"policy/unused", Metric::kMean, ""},
                                         {.name = "reward/rule/", .is_family = true}};
  MetricsRecorder all(declared), first(declared), second(declared);
  const auto record = [&](MetricsRecorder& metrics, int rank) {
    for (int i = rank < 0 ? 0 : rank; i < 20; i += rank < 0 ? 1 : 2) {
      metrics.mean("policy/loss", 0.1 * i - 0.3, 1 + i);
      metrics.moments("reward/score", 1.0 / (1 + i));
      metrics.sum("data/groups", 0.7);
      metrics.maximum("policy/ratio_max", -std::abs(i - 7.1));
      metrics.mean(i % 2 == 0 ? "reward/rule/tidy" : "reward/rule/brief", i);
    }
    metrics.value("policy/learning_rate", 1e-5);
  };
  record(all, -1);
  record(first, 0);
  record(second, 1);
  Contribution both = second.contribution();
  add_contribution(both, first.contribution());
  EXPECT_EQ(first.row(both), all.take());
}

TEST(MetricsRecorder, OfAnIterationThatIsDroppedNothingIsTold) {
  const MetricsRecorder metrics({{.name = "reward/rule/", .is_family = true}, {"policy/loss", Metric::kMean, ""}});
  EXPECT_TRUE(metrics.row({}).empty());
}

TEST(MetricsRecorder, NamesOfAFamilyAreInAlphabeticalOrder) {
  MetricsRecorder metrics({{.name = "reward/rule/", .is_family = true}, {"policy/loss", Metric::kMean, ""}});
  for (const char* name : {"reward/rule/b", "reward/rule/a", "policy/loss"}) metrics.mean(name, 1);
  const MetricRow row = metrics.take();
  EXPECT_THAT(row, ::testing::ElementsAre(::testing::Pair("policy/loss", 1), ::testing::Pair("reward/rule/a", 1),
                                          ::testing::Pair("reward/rule/b", 1)));
}

TEST(Contributions, RefuseTwoKindsOfOneName) {
  Contribution sum{{.name = "a", .kind = Metric::kSum, .recorded = true}};
  EXPECT_THROW(add_contribution(sum, {{.name = "a", .kind = Metric::kMaximum, .recorded = true}}), InternalError);
}

TEST(Contributions, OfMaximaDoNotDependOnTheOrder) {
  const auto top = [](double number) { return Part{.name = "a", .kind = Metric::kMaximum, .top = number, .recorded = true}; };
  for (const double a : {-1.0, -0.0, 0.0, 2.0, std::nan("")}) {
    for (const double b : {-1.0, -0.0, 0.0, 2.0, std::nan("")}) {
      Part one = top(a), other = top(b);
      one.add(top(b));
      other.add(top(a));
      EXPECT_EQ(std::signbit(one.top), std::signbit(other.top));
      EXPECT_TRUE(one.top == other.top || (std::isnan(one.top) && std::isnan(other.top)));
    }
  }
}

TEST(Contributions, OfMaximaDoNotDependOnWhoRecorded) {
  const double nan = std::nan("");
  MetricsRecorder alone({{"kl", Metric::kMaximum, ""}}), first({{"kl", Metric::kMaximum, ""}}),
      second({{"kl", Metric::kMaximum, ""}});
  for (const double value : {1.0, nan, 2.0}) alone.maximum("kl", value);
  first.maximum("kl", 1);
  for (const double value : {nan, 2.0}) second.maximum("kl", value);
  Contribution both = second.contribution();
  add_contribution(both, first.contribution());
  EXPECT_TRUE(std::isnan(alone.take().front().second));
  EXPECT_TRUE(std::isnan(first.row(both).front().second));
}

TEST(Totals, CanBeReadFromOnePointToTheNext) {
  Totals totals({"actions"});
  totals.add("actions", 3);
  totals.add("actions", 4);
  EXPECT_EQ(totals.sum_of_all("actions"), 0) << "not combined yet";
  totals.combine_alone();
  EXPECT_EQ(totals.sum_of_all("actions"), 7);
  totals.add("actions", 1);
  EXPECT_EQ(totals.sum_of_all("actions"), 7);
  totals.combine_alone();
  EXPECT_EQ(totals.sum_of_all("actions"), 1);
}

TEST(Totals, CountsAreAddedPlaceByPlace) {
  Totals totals({"tokens"}), other({"tokens"});
  totals.my_counts("tokens") = {1, 2};
  other.my_counts("tokens") = {10, 20, 30};
  Contribution of_all = totals.contribution();
  add_contribution(of_all, other.contribution());
  totals.set_combined(of_all);
  EXPECT_EQ(totals.counts_of_all("tokens"), (std::vector<int64_t>{11, 22, 30}));
  totals.combine_alone();
  EXPECT_TRUE(totals.counts_of_all("tokens").empty()) << "of the point before";
}

TEST(Totals, RefuseWhatIsNotDeclared) {
  Totals totals({"actions"});
  EXPECT_THROW(totals.my_counts("samples"), UserError);
  EXPECT_THROW(totals.counts_of_all("samples"), UserError);
  EXPECT_THROW(totals.add("samples", 1), UserError);
  EXPECT_THROW(totals.of_all("samples"), UserError);
}

}  // namespace
}  // namespace sluice::engine::metrics_test
