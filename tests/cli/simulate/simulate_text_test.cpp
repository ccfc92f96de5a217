#include "cli/simulate/simulate_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json/json.h"

namespace sluice::cli::simulate_text_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

engine::SimulationResult some_result(double seconds) {
  engine::SimulationResult result{.seconds = seconds, .iterations = 3};
  result.tokens = 3000;
  result.rollout_seconds = seconds / 2, result.train_seconds = seconds / 4, result.overlap_seconds = seconds / 10;
  result.executors = {{.name = "cpu:1",
                       .threads = 2,
                       .busy_seconds = seconds / 2,
                       .no_credit_seconds = seconds / 4,
                       .no_weights_seconds = seconds / 4}};
  result.nodes = {{.name = "generate", .executor = "cpu:1", .busy_seconds = seconds / 2}};
  result.budget = 4096, result.tokens_in_flight_peak = 4000;
  result.tokens_in_flight = {0, 1, 512, 2048, 4096};
  return result;
}

SimulationView some_view() {
  SimulationView view{.pipeline = "ppo", .costs_from = "runs/x", .measured_seconds = 1.6, .measured_iterations = 3};
  view.variants.push_back({"", some_result(1.5)});
  return view;
}

TEST(SimulationText, SaysHowLongAndWhereTheTimeGoes) {
  const std::string text = simulation_text(some_view());
  EXPECT_THAT(text, HasSubstr("ppo: 3 iterations would take 1.50 s, by the costs of runs/x (3 iterations in 1.60 s)\n"));
  EXPECT_THAT(text, HasSubstr("cpu:1          2   50 %               25 %          25 %         0 %            0 %\n"));
  EXPECT_THAT(text, HasSubstr("generation 50 %, training 25 %, both at once 10 % of the time; 2.0k tok/s\n"));
  EXPECT_THAT(text, Not(HasSubstr("last few samples")));
  EXPECT_THAT(text, HasSubstr("in flight at most 4.0k of 4.1k tokens"));
  EXPECT_THAT(text, HasSubstr("| ▁▁▄█|"));  // what is above 0 is seen
  EXPECT_THAT(text, Not(HasSubstr("what if")));
}

TEST(SimulationText, TellsWhatTheLastSamplesTake) {
  SimulationView view = some_view();
  view.variants.front().result.tail_seconds = 0.3;
  EXPECT_THAT(simulation_text(view), HasSubstr("  the last few samples of iterations take 20 % of the time\n"));
}

TEST(SimulationText, AnEstimateSaysWhatItAssumes) {
  SimulationView view = some_view();
  view.costs_from.clear(), view.gflops = 30;
  EXPECT_THAT(simulation_text(view), HasSubstr("an estimate: 30 billion operations a second for each core"));
}

TEST(SimulationText, VariantsAreComparedWithThePipelineAsItIs) {
  SimulationView view = some_view();
  view.variants.push_back({"a.b=1", some_result(3)});
  view.variants.push_back({"a.b=2", some_result(3)});
  view.variants.back().result.stall = Problem{.message = "stalls"};
  view.variants.back().result.notes = {"'train' was not measured"};
  const std::string text = simulation_text(view);
  EXPECT_THAT(text, HasSubstr("  as it is   1.50 s    1.00"));
  EXPECT_THAT(text, HasSubstr("  a.b=1      3.00 s    2.00"));
  EXPECT_THAT(text, HasSubstr("  a.b=2      stalls\n"));
  EXPECT_THAT(text, HasSubstr("note: with a.b=2, 'train' was not measured\n"));
}

/// Ranks that train and that sample; three of ten parts of the time they wait for each other.
SimulationView view_of_roles() {
  SimulationView view = some_view();
  const auto all = [](double share) { return engine::SimulationResult::Share{share, share, share}; };
  engine::SimulationResult::Ranks ranks{.count = 3, .busy = all(0.6), .idle = 0.4};
  ranks.columns = {.bytes = 3e6, .seconds = 0.15};
  ranks.weights = {.bytes = 30e6, .seconds = 0.3};
  ranks.roles = {
      {.name = "train", .ranks = 1, .busy = all(0.7), .waits_for_groups = all(0.3)},
      {.name = "rollout", .ranks = 2, .busy = all(0.55), .waits_for_weights = all(0.25), .waits_for_network = all(0.2)}};
  view.variants.front().result.ranks = ranks;
  view.variants.front().ranks = 3;
  return view;
}

TEST(SimulationText, TellsWhatTheRanksOfEachRoleWaitFor) {
  const std::string text = simulation_text(view_of_roles());
  EXPECT_THAT(
      text,
      HasSubstr("  role      ranks   busy   waits for weights   for groups or credit   for others   for the network\n"
                "  train         1   70 %                 0 %                   30 %          0 %               0 %\n"
                "  rollout       2   55 %                25 %                    0 %          0 %              20 %\n"
                "  an iteration takes 500.0 ms; bubbles are 40 % of the ranks' time\n"
                "  links carry groups 10 % of the time, 1.0 MB an iteration; weights 20 % of the time, 10.0 MB an iteration\n"));
}

TEST(SimulationText, SaysWhichSplitIsBest) {
  SimulationView view = view_of_roles();
  for (const double seconds : {1.2, 1.6}) {
    view.variants.push_back(view.variants.front());
    SimulationView::Variant& variant = view.variants.back();
    variant.setting = "rollout.ranks=" + std::to_string(view.variants.size());
    variant.result.seconds = seconds;
  }
  const std::string text = simulation_text(view);
  EXPECT_THAT(text, HasSubstr("  as it is          1 + 2   1.50 s    1.00"));
  EXPECT_THAT(text, HasSubstr("\n  the shortest time: rollout.ranks=2\n"));
  EXPECT_THAT(text, Not(HasSubstr("all ranks together")));
  view.variants[1].ranks = 6;  // three of which assist
  EXPECT_THAT(simulation_text(view), HasSubstr("  the least time of all ranks together: as it is\n"));
}

TEST(SimulationText, CountsRanksThatAssist) {
  SimulationView view = view_of_roles();
  EXPECT_THAT(simulation_text(view), HasSubstr("would take 1.50 s on 3 ranks, by"));
  view.variants.front().ranks = 5;
  EXPECT_THAT(simulation_text(view), HasSubstr("would take 1.50 s on 5 ranks, of which 2 assist, by"));
}

TEST(SimulationJson, HasTheRolesAndWhatLinksCarry) {
  const Json ranks = parse_json(simulation_json(view_of_roles()), "simulation")["variants"][0]["ranks"];
  EXPECT_EQ(ranks["bubbles"], 0.4);
  EXPECT_EQ(ranks["weights_carried"]["bytes"], 30e6);
  EXPECT_EQ(ranks["roles"][1]["name"], "rollout");
  EXPECT_EQ(ranks["roles"][1]["waits_for_weights"]["mean"], 0.25);
}

TEST(SimulationJson, HoldsEveryVariant) {
  SimulationView view = some_view();
  view.variants.push_back({"a.b=1", some_result(3)});
  const Json json = parse_json(simulation_json(view), "simulation");
  EXPECT_EQ(json["measured_seconds"], 1.6);
  EXPECT_EQ(json["variants"][1]["setting"], "a.b=1");
  EXPECT_EQ(json["variants"][1]["ratio"], 2);
  EXPECT_EQ(json["variants"][0]["executors"][0]["no_credit_seconds"], 0.375);
}

}  // namespace
}  // namespace sluice::cli::simulate_text_test
