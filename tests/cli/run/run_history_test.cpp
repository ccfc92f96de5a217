#include "cli/run/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal/ink.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::cli::run_history_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class History : public ::testing::Test {
 protected:
  History() { plan_.pipeline.name = "ppo"; }

  /// The line of the summary about the score of a run whose iterations had these.
  std::string score_line(const std::vector<double>& scores, const Abilities& able = {}) {
    RunHistory history(plan_, 0);
    for (const double score : scores) history.add({.iteration = 0, .metrics = {{"reward/score_mean", score}}});
    const std::string text = history.summary({}, "runs/ppo", able);
    const size_t begin = text.find("  score ");
    return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  }

  engine::Plan plan_;
};

TEST_F(History, OfOneIterationTheSummaryHasOnlyTheScore) { EXPECT_EQ(score_line({0.5}), "  score       0.500"); }

TEST_F(History, OfTwoItComparesTheFirstWithTheLast) {
  EXPECT_EQ(score_line({0.5, 0.75}), "  score       0.500 -> 0.750 (the first and the last iteration)");
}

TEST_F(History, OfAShortRunTheWindowsDoNotOverlap) {
  EXPECT_EQ(score_line({0, 1, 1}), "  score       0.000 -> 1.000 (mean of the first and the last 2 iterations)");
  EXPECT_EQ(score_line({0, 0, 0, 1, 1, 1, 1}), "  score       0.000 -> 1.000 (mean of the first 3 and the last 4 iterations)");
}

TEST_F(History, OfALongRunTheyAreThreeAndTen) {
  std::vector<double> scores(20, 0.5);
  for (size_t i = 10; i < 20; ++i) scores[i] = 1;
  EXPECT_EQ(score_line(scores), "  score       0.500 -> 1.000 (mean of the first 3 and the last 10 iterations)");
}

TEST_F(History, OnATerminalThereIsACurve) {
  EXPECT_THAT(score_line({0, 1}, {.cursor = true, .unicode = true}), HasSubstr("iteration)  ▁█"));
  EXPECT_THAT(score_line({0, 1}, {.cursor = true}), HasSubstr("iteration)  _#"));
  EXPECT_THAT(score_line({0, 1}), Not(HasSubstr("▁")));
}

TEST_F(History, ARunWithoutScoreAndLossHasNoSuchLine) { EXPECT_EQ(score_line({}), ""); }

// What is evaluated is the result of a run that trains nothing.
TEST_F(History, OfARunThatTrainsNothingTheSummaryHasTheRewardsThatItMeasured) {
  const engine::MetricRow measured{
      {"data/samples", 8}, {"reward/score_mean", 0.5}, {"reward/pass_at_8", 0.75}, {"reward/margin", -0.0012}};
  RunHistory history(plan_, 0);
  history.add({.iteration = 0, .metrics = measured});
  EXPECT_THAT(history.summary({}, "runs/ppo", {}), HasSubstr("  score       0.500\n"
                                                             "  measured    reward/pass_at_8  0.75\n"
                                                             "              reward/margin     -0.0012\n"
                                                             "  samples     8 of"));
  history.add({.iteration = 1, .metrics = measured});
  EXPECT_THAT(history.summary({}, "runs/ppo", {}), HasSubstr("  measured    reward/pass_at_8  0.75 (the last iteration)\n"));

  plan_.models.push_back({.usage = {.updated = true}});
  EXPECT_THAT(history.summary({}, "runs/ppo", {}), Not(HasSubstr("reward/pass_at_8")));
}

// An iteration that measures takes ten times as long, and the next one has hardly any time left.
TEST_F(History, TheLineHasThePaceOfTheLastFewIterations) {
  RunHistory history(plan_, 0);
  const auto pace = [&] { return fitted(history.latest(), 200, /*colour=*/false); };
  const auto add = [&](double seconds) {
    history.add({.iteration = 0, .metrics = {{engine::metrics::kTokens, 1000}, {engine::metrics::kIterationSeconds, seconds}}});
  };
  EXPECT_EQ(pace(), "");
  for (const double seconds : {100.0, 1.0, 1.0, 1.9}) add(seconds);
  add(0.1);
  EXPECT_THAT(pace(), HasSubstr("   1.0k tok/s"));
  add(0);
  EXPECT_THAT(pace(), HasSubstr("   1.3k tok/s"));
}

TEST_F(History, ARunOfWhichNoPaceIsKnownHasNone) {
  RunHistory history(plan_, 0);
  history.add({.iteration = 0, .metrics = {}});
  EXPECT_THAT(fitted(history.latest(), 200, /*colour=*/false), Not(HasSubstr("tok/s")));
}

TEST_F(History, TheFolderCannotSteerTheTerminal) {
  EXPECT_THAT(RunHistory(plan_, 0).summary({}, "runs/\x1b[31m", {}), HasSubstr("  run folder  runs/\\x1b[31m"));
}

}  // namespace
}  // namespace sluice::cli::run_history_test
