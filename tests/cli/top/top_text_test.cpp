#include "cli/top/top_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text/strings.h"
#include "tests/golden.h"

namespace sluice::cli::top_text_test {
namespace {

using engine::RunStatus;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// A run in the middle of its 42nd iteration.
TopView running() {
  RunStatus status{
      .pipeline = "ppo",
      .state = "running",
      .pid = 4711,
      .seconds = 71.2,
      .iterations = 120,
      .iterations_done = 41,
      .sampling_iteration = 42,
      .running_samples = 3,
      .tokens_in_flight = 5120,
      .tokens_in_flight_peak = 9800,
      .budget = 16384,
      .column_bytes = 412'000,
      .column_bytes_peak = 1'900'000,
      .resident_bytes = 812'000'000,
      .memory = {.classes = {{"program", 0, 210'000'000},
                             {"weights", 240'000'000, 240'000'000},
                             {"activations", 400'000'000, 310'000'000}},
                 .planned_bytes = 640'000'000,
                 .peak_bytes = 820'000'000},
      .executors = {{"cpu:1", 2, "generate", 0.02, 41.3, 0}, {"cpu", 2, "", 0, 27.8, 3}},
      .nodes = {{"prompts", "cpu:1", 0, 0, 0.1, 0, 0, ""},
                {"generate", "cpu:1", 123, 672'000, 41.2, 0, 0, ""},
                {"score", "cpu", 123, 672'000, 0.4, 2, 0, ""},
                {"advantages", "cpu", 120, 655'000, 0.2, 1, 3, "the end of iteration 41"},
                {"train", "cpu", 120, 655'000, 27.1, 0, 0, "micro-batches of advantages"}},
      .edges = {
          {"generate", "score", 2, 4096, 98'304}, {"score", "advantages", 0, 0, 0}, {"advantages", "train", 3, 6100, 146'400}}};
  engine::MetricRow metrics{{"iteration", 40},
                            {"policy_version", 40},
                            {"policy_lag", 0},
                            {"data/groups", 32},
                            {"data/samples", 128},
                            {"data/tokens", 5473},
                            {"reward/score_mean", 0.8125},
                            {"reward/score_std", 0.39},
                            {"reference/kl_mean", 0.0213456},
                            {"policy/loss", -0.00012345},
                            {"value/loss", 0.131},
                            {"policy/grad_norm", 1.25},
                            {"time/iteration_seconds", 1},
                            {"engine/tokens_in_flight_max", 4e3},
                            {"memory/resident_bytes", 812e6}};
  return {.status = status, .metrics = metrics};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  EXPECT_EQ(lines.back(), "");
  lines.pop_back();
  return lines;
}

TEST(TopText, ShowsWhatARunDoes) { expect_golden("cli/top/running.txt", top_text(running(), 120)); }

TEST(TopText, FitsANarrowTerminal) {
  const std::string text = top_text(running(), 60);
  expect_golden("cli/top/narrow.txt", text);
  EXPECT_THAT(lines_of(text), Each(SizeIs(::testing::Le(60u))));
}

TEST(TopText, ShowsARunThatHasEnded) {
  TopView view = running();
  view.status.state = "done";
  view.status.iterations_done = 120;
  view.status.sampling_iteration = -1;
  view.silent_seconds = 86'400;  // of course
  view.status.ranks = {{.rank = 0, .host = "n1", .pid = 4711, .last = {"in 'generate', iteration 119", 119, 5120, 812'000'000}}};
  expect_golden("cli/top/done.txt", top_text(view, 120));
}

TEST(TopText, SaysWhatARunThatFailedWasAt) {
  TopView view = running();
  view.status.state = "failed";
  expect_golden("cli/top/failed.txt", top_text(view, 120));
}

TEST(TopText, SaysWhenTheProcessIsGone) {
  TopView view = running();
  view.gone = true;
  view.silent_seconds = 3600;
  EXPECT_THAT(top_text(view, 160), StartsWith("ppo  ended without saying so   iteration 41/120"));
  EXPECT_THAT(top_text(view, 160), Not(HasSubstr(" left")));
}

TEST(TopText, SaysWhenARunningProcessNoLongerWritesItsStatus) {
  TopView view = running();
  view.silent_seconds = 42;
  EXPECT_THAT(top_text(view, 160), StartsWith("ppo  running, but silent for 42 s   iteration 41/120"));
}

TEST(TopText, HasNoFiguresAndNoForecastBeforeTheFirstIterationEnded) {
  TopView view = running();
  view.status.iterations_done = 0;
  view.metrics.clear();
  const std::string text = top_text(view, 120);
  EXPECT_THAT(text, HasSubstr("iteration 0/120  ---------------- 0 %   elapsed 71 s\n"));
  EXPECT_THAT(text, Not(HasSubstr("reward/score_mean")));
}

TEST(TopText, OfARunThatGoesOnTheForecastIsOfWhatItHasDoneSince) {
  TopView view = running();
  view.status.iterations_before = 40;  // so one iteration took the 71.2 s
  EXPECT_THAT(top_text(view, 160),
              HasSubstr("iteration 41/120  #####----------- 34 %   elapsed 71 s since iteration 40   about 93 min 45 s left\n"));
  view.status.iterations_before = 41;
  EXPECT_THAT(top_text(view, 160), Not(HasSubstr(" left")));
}

TEST(TopText, OfAnEmptyStatusDividesNothingByZero) {
  const std::string text =
      top_text({.status = {.pipeline = "p", .state = "running", .executors = {{"cpu"}}, .nodes = {{"a"}}}}, 120);
  EXPECT_THAT(text, HasSubstr("0 %"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(TopText, HasARowARankWhereThereAreSeveral) {
  TopView view = running();
  view.status.ranks = {
      {.rank = 0,
       .host = "n1",
       .pid = 4711,
       .last = {"in 'generate', iteration 41", 41, 5120, 812'000'000},
       .silent_seconds = 0.4},
      {.rank = 1, .host = "n2", .pid = 318, .last = {"idle, iteration 41", 41, 0, 790'000'000}, .silent_seconds = 4.2}};
  EXPECT_THAT(top_text(view, 120),
              HasSubstr("\nrank  host   pid  done  resident  in flight  last sign  does\n"
                        "0     n1    4711    41    812 MB       5.1k  0.4 s ago  in 'generate', iteration 41\n"
                        "1     n2     318    41    790 MB          0  4.2 s ago  idle, iteration 41\n"));
}

TEST(TopText, OfManyFiguresShowsTheFirstAndCountsTheOthers) {
  TopView view = running();
  for (int i = 0; i < 100; ++i) view.metrics.emplace_back("metric_" + std::to_string(i), 0.5);
  const std::string text = top_text(view, 120);
  const std::vector<std::string> lines = lines_of(text.substr(text.find("iteration 40, ")));
  EXPECT_THAT(lines, SizeIs(1 + 8 + 1));
  EXPECT_THAT(lines[1], StartsWith("reward/score_mean "));
  EXPECT_EQ(lines.back(), "and 85 more in metrics.jsonl");  // of 109, three columns of 8 are shown
}

TEST(TopText, ShowsAFigureThatIsNotANumber) {
  TopView view = running();
  view.metrics = {{"policy/loss", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THAT(top_text(view, 120), HasSubstr("policy/loss  not finite\n"));
}

// A status file is text that anyone may have written.
TEST(TopText, LetsNothingThroughThatMovesTheCursor) {
  TopView view = running();
  view.status.nodes[0].waits_for = "\033[2Ja\nb";
  EXPECT_THAT(top_text(view, 160), HasSubstr("\\x1b[2Ja\\nb\n"));
}

TEST(TopText, CutsBetweenCharacters) {
  TopView view = running();
  view.status.pipeline = "größe";
  EXPECT_THAT(top_text(view, 3), StartsWith("grö\n"));
}

}  // namespace
}  // namespace sluice::cli::top_text_test
