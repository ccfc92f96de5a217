#include "engine/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "engine/run/cost_recorder.h"
#include "engine/simulation/cost_model.h"
#include "engine/simulation/guesses.h"
#include "tests/engine/simulation_world.h"

namespace sluice::engine::simulation_test {
namespace {

using testing::add_mix;
using testing::add_training;
using testing::costs_with_lengths;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::on_the_cores_of;
using testing::toy_pipeline;
using testing::toy_plan;
using testing::ToyPlan;

double us(double seconds) { return std::round(seconds * 1e9) / 1e3; }

const SimulationResult::Executor& place(const SimulationResult& result, const std::string& name) {
  return *std::ranges::find(result.executors, name, &SimulationResult::Executor::name);
}

// Prompts of 1 token and responses of 2: two steps of 10 us, then every group is a micro-batch of 3 tokens.
Costs short_samples() {
  Costs costs = costs_with_lengths(1, 2);
  costs.nodes["source"] = {};
  costs.nodes["rollout"] = {.per_step_us = 10};
  return costs;
}

TEST(Simulation, TwoExecutorsOverlap) {
  PipelineBuilder builder = toy_pipeline(2, 2, 64, "cpu:1");
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["mix"] = {.per_batch_us = 70, .per_token_us = 10};
  const SimulationResult result = simulate(toys.plan, costs);
  // Steps 0-20 and 20-40; micro-batches from 20 on, four of 100 us back to back.
  EXPECT_EQ(us(result.seconds), 420);
  EXPECT_EQ(us(place(result, "cpu").busy_seconds), 400);
  EXPECT_EQ(us(place(result, "cpu:1").busy_seconds), 40);
  EXPECT_EQ(us(place(result, "cpu").no_input_seconds), 20);
  EXPECT_EQ(us(result.rollout_seconds), 40);
  EXPECT_EQ(result.tokens, 12);
  EXPECT_EQ(result.sampled_tokens, 8);
  EXPECT_THAT(result.iteration_seconds, ElementsAre(DoubleNear(220e-6, 1e-12), DoubleNear(200e-6, 1e-12)));
  EXPECT_FALSE(result.stall);
}

TEST(Simulation, OneExecutorDoesOneThingAfterTheOtherTheMostDownstreamFirst) {
  PipelineBuilder builder = toy_pipeline(2, 2, 64, "cpu");
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["mix"] = {.per_batch_us = 100};
  const SimulationResult result = simulate(toys.plan, on_the_cores_of(toys.plan, costs));
  EXPECT_EQ(us(result.seconds), 440);  // 2 x (20 + 200)
  EXPECT_EQ(us(place(result, "cpu").busy_seconds), 440);
}

TEST(Simulation, AStepTakesWhatItSamplesAndReads) {
  PipelineBuilder builder = toy_pipeline(1, 3, 64, "cpu");
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["rollout"] = {.per_step_us = 10, .per_sampled_token_us = 2, .per_prompt_token_us = 5};
  costs.nodes["mix"] = {};
  // The first step reads three prompts of one token and samples three tokens, the second only samples.
  EXPECT_EQ(us(simulate(toys.plan, on_the_cores_of(toys.plan, costs)).seconds), (10 + 3 * 2 + 3 * 5) + (10 + 3 * 2));
}

// Responses of three tokens: the first comes with the prompt, and with a guess that is right the other two at once.
TEST(Simulation, GuessesThatAreRightSaveStepsAndThoseInVainCostRows) {
  PipelineBuilder builder = toy_pipeline(1, 2, 64, "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = costs_with_lengths(1, 3);
  costs.nodes["source"] = {};
  costs.nodes["rollout"] = {.per_step_us = 10, .per_sampled_token_us = 2};
  costs = on_the_cores_of(toys.plan, costs);
  const auto seconds_with = [&](const Guesses& guesses) {
    costs.guesses["rollout"] = guesses;
    return us(simulate(toys.plan, costs).seconds);
  };
  EXPECT_EQ(seconds_with({}), 3 * 10 + 6 * 2);
  EXPECT_EQ(seconds_with({.drafted_per_step = 3, .kept_per_step = 2}), 2 * 10 + 6 * 2);
  EXPECT_EQ(seconds_with({.samples = 1, .drafted_per_step = 3, .kept_per_step = 2}), 3 * 10 + 6 * 2) << "two run";
  EXPECT_EQ(seconds_with({.drafted_per_step = 3, .kept_per_step = 0.5}), 3 * 10 + 6 * 2) << "only one is right";
  // Six guesses, two of which are right; a draft takes half of a step and of each of its rows.
  EXPECT_EQ(seconds_with({.drafted_per_step = 3, .kept_per_step = 2, .apart = true, .draft_share = 0.5}),
            2 * 10 + 6 * 2 + (6 - 2) * 2 + (3 * 10 + 6 * 2) / 2);
}

TEST(Simulation, WithoutLagTheNextIterationWaitsForItsWeights) {
  PipelineBuilder builder = toy_pipeline(2, 2, 64, "cpu:1", /*trained=*/true);
  add_training(builder, "rollout");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["train"] = {.per_batch_us = 100, .per_iteration_us = 50};
  costs.nodes["publish"] = {.per_iteration_us = 5};
  const SimulationResult result = simulate(toys.plan, costs);
  EXPECT_EQ(us(result.seconds), 2 * (20 + 200 + 50 + 5));
  EXPECT_EQ(us(result.train_seconds), 500);
  EXPECT_EQ(us(result.overlap_seconds), 0);
  EXPECT_EQ(us(place(result, "cpu:1").no_weights_seconds), 255);  // 20 to 275
  EXPECT_EQ(us(place(result, "cpu:1").no_input_seconds), 255);    // nothing is left
  EXPECT_EQ(us(place(result, "cpu").no_input_seconds), 40);
}

TEST(Simulation, WithLagItDoesNot) {
  PipelineBuilder builder = toy_pipeline(2, 2, 64, "cpu:1", /*trained=*/true);
  builder.set("schedule", "policy_lag", int64_t{1});
  add_training(builder, "rollout");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["train"] = {.per_batch_us = 100, .per_iteration_us = 50};
  costs.nodes["publish"] = {.per_iteration_us = 5};
  const SimulationResult result = simulate(toys.plan, costs);
  EXPECT_EQ(us(result.seconds), 20 + 2 * (200 + 50 + 5));
  EXPECT_EQ(us(result.overlap_seconds), 20);  // iteration 1 is sampled while iteration 0 is trained
}

// Of eight samples some have 20 tokens and most have 2.
TEST(Simulation, TellsWhatTheLastSamplesOfAnIterationTake) {
  const ToyPlan toys = toy_plan(toy_pipeline(4, 8, 400, "cpu"));
  Costs costs = short_samples();
  costs = on_the_cores_of(toys.plan, costs);
  EXPECT_EQ(us(simulate(toys.plan, costs).tail_seconds), 0);
  for (int i = 0; i < 15; ++i) costs.lengths.front().response.add(2);
  costs.lengths.front().response.add(20);
  const SimulationResult result = simulate(toys.plan, costs);
  EXPECT_GT(result.tail_seconds, 0);
  EXPECT_LT(result.tail_seconds, result.rollout_seconds);
}

TEST(Simulation, AGroupWaitsForCredit) {
  PipelineBuilder builder = toy_pipeline(1, 2, 4, "cpu:1");
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["mix"] = {.per_batch_us = 100};
  const SimulationResult result = simulate(toys.plan, costs);
  EXPECT_EQ(us(result.seconds), 2 * (20 + 100));
  EXPECT_EQ(us(place(result, "cpu:1").no_credit_seconds), 100);
  EXPECT_EQ(result.tokens_in_flight_peak, 4);
  const double mean = std::reduce(result.tokens_in_flight.begin(), result.tokens_in_flight.end()) / 60;
  EXPECT_NEAR(mean, (20 * 4.0 + 100 * 3.0) / 120, 1e-6);  // 4 while it is sampled, 3 once its length is known
}

TEST(Simulation, ABarrierDoesItsWorkAtTheEnd) {
  PipelineBuilder builder = toy_pipeline(1, 2, 64, "cpu:1");
  add_mix(builder, "mix", "rollout", "cpu", /*barrier=*/true);
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["mix"] = {.per_batch_us = 10, .per_token_us = 2, .per_iteration_us = 100};
  EXPECT_EQ(us(simulate(toys.plan, costs).seconds), 20 + 2 * 10 + 6 * 2 + 100);
}

TEST(Simulation, AnExecutorPausesBetweenTwoPiecesOfWork) {
  PipelineBuilder builder = toy_pipeline(1, 2, 64, "cpu");
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.gap_us = 1;
  costs.nodes["mix"] = {.per_batch_us = 100};
  EXPECT_EQ(us(simulate(toys.plan, on_the_cores_of(toys.plan, costs)).seconds), 10 + 1 + 10 + 1 + 100 + 1 + 100);
}

TEST(Simulation, MoreCoresThanWereMeasuredDivideTheTimesAndItSaysSo) {
  PipelineBuilder builder = toy_pipeline(1, 1, 64, "cpu");
  builder.set("runtime", "cores", int64_t{4});
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  Costs costs = short_samples();
  costs.nodes["rollout"].threads = 2;
  costs.nodes["mix"] = {.threads = 4, .per_batch_us = 100};
  const SimulationResult result = simulate(toys.plan, costs);
  EXPECT_EQ(us(result.seconds), 2 * 5 + 100);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("'rollout' was measured on 2 cores and has 4 here")));
}

TEST(Simulation, ANodeWithoutCostsIsFreeAndItSaysSo) {
  PipelineBuilder builder = toy_pipeline(1, 1, 64, "cpu:1");
  add_mix(builder, "mix", "rollout", "cpu");
  const ToyPlan toys = toy_plan(builder);
  const SimulationResult result = simulate(toys.plan, short_samples());
  EXPECT_EQ(us(result.seconds), 20);
  EXPECT_THAT(result.notes, ElementsAre(HasSubstr("'mix' was not measured")));
}

// Lengths, filters, lag and several executors at once.
ToyPlan busy_plan(int64_t iterations = 20) {
  PipelineBuilder builder("toys", iterations);
  builder.budget(300, 40).set("runtime", "cores", int64_t{3}).set("schedule", "policy_lag", int64_t{1}).model("policy", {});
  const Array drawn{{.data = std::string("drawn"), .where = {}, .base = {}}};
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{12}}});
  builder.node("rollout", "toy_rollout", {"source"},
               {{"worst_sample_tokens", int64_t{10}}, {"samples_per_group", int64_t{2}}, {"model", std::string("policy")}},
               "cpu:1");
  builder.node("keep", "toy_filter", {"rollout"}, {{"reads", drawn}}, "cpu:2");
  add_mix(builder, "mix", "keep", "cpu:2");
  add_mix(builder, "whiten", "mix", "cpu", /*barrier=*/true);
  add_training(builder, "whiten");
  return toy_plan(builder);
}

Costs busy_costs() {
  Costs costs;
  for (const int64_t first : {0, 10}) {
    Lengths& lengths = costs.lengths.emplace_back(Lengths{.first_iteration = first, .prompt = {}, .response = {}});
    for (int64_t length = 1; length <= 3; ++length) lengths.prompt.add(length, length);
    for (int64_t length = 1; length <= 7; ++length) lengths.response.add(length, first == 0 ? length : 8 - length);
  }
  costs.nodes["source"] = {};
  costs.nodes["rollout"] = {.per_step_us = 20, .per_sampled_token_us = 3, .per_prompt_token_us = 1};
  costs.nodes["keep"] = {.per_batch_us = 4, .kept_share = 0.7};
  costs.nodes["mix"] = {.per_batch_us = 15, .per_token_us = 2};
  costs.nodes["whiten"] = {.per_token_us = 1};
  costs.nodes["train"] = {.per_batch_us = 30, .per_token_us = 5, .per_iteration_us = 80};
  costs.nodes["publish"] = {.per_iteration_us = 10};
  return costs;
}

TEST(Simulation, TheSamePlanAndCostsGiveTheSameResult) {
  const ToyPlan toys = busy_plan();
  const SimulationResult a = simulate(toys.plan, busy_costs()), b = simulate(toys.plan, busy_costs());
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.iteration_seconds, b.iteration_seconds);
  EXPECT_EQ(a.tokens_in_flight, b.tokens_in_flight);
  EXPECT_EQ(a.tokens_in_flight_peak, b.tokens_in_flight_peak);
  EXPECT_EQ(a.overlap_seconds, b.overlap_seconds);
  EXPECT_EQ(a.sampled_tokens, b.sampled_tokens);
  EXPECT_GT(a.overlap_seconds, 0);
}

// No schedule is faster than its busiest executor or slower than one thing after the other; an executor's time is accounted for
// whole.
TEST(Simulation, LiesBetweenTheBounds) {
  const ToyPlan toys = busy_plan();
  const SimulationResult result = simulate(toys.plan, busy_costs());
  double all = 0, most = 0;
  for (const SimulationResult::Executor& use : result.executors) {
    all += use.busy_seconds;
    most = std::max(most, use.busy_seconds);
    EXPECT_NEAR(use.busy_seconds + use.gap_seconds + use.no_credit_seconds + use.no_weights_seconds + use.no_input_seconds,
                result.seconds, 1e-9);
  }
  EXPECT_GE(result.seconds, most);
  EXPECT_LE(result.seconds, all);
  EXPECT_LE(result.tokens_in_flight_peak, result.budget);
  EXPECT_EQ(result.iterations, 20);
  EXPECT_EQ(result.iteration_seconds.size(), 20U);
}

// A recorder that watches a run of known costs finds them again, lengths, shares and all; so the same run is predicted from them.
TEST(Simulation, WhatARecorderMeasuresPredictsTheRun) {
  const ToyPlan toys = busy_plan(/*iterations=*/64);
  const Costs known = busy_costs();
  CostRecorder recorder(toys.plan);
  const SimulationResult measured = simulate(toys.plan, known, {&recorder});
  Costs costs = recorder.costs();
  EXPECT_DOUBLE_EQ(costs.seconds, measured.seconds);
  EXPECT_NEAR(costs.nodes.at("rollout").per_step_us, 20, 1);
  EXPECT_NEAR(costs.nodes.at("rollout").per_sampled_token_us, 3, 0.15);
  EXPECT_NEAR(costs.nodes.at("mix").per_batch_us, 15, 1);
  EXPECT_NEAR(costs.nodes.at("mix").per_token_us, 2, 0.05);
  EXPECT_NEAR(costs.nodes.at("train").per_token_us, 5, 0.1);
  EXPECT_NEAR(costs.nodes.at("train").per_iteration_us, 80, 1e-6);
  EXPECT_NEAR(costs.lengths.front().response.mean(), 5, 0.4);
  EXPECT_NEAR(costs.lengths.back().response.mean(), 3, 0.4);
  costs.nodes["keep"].kept_share = known.nodes.at("keep").kept_share;  // nobody reported the iterations
  EXPECT_NEAR(simulate(toys.plan, costs).seconds, measured.seconds, 0.03 * measured.seconds);
}

const std::map<std::string, GuessRules> kGuesses{{"rollout", {.tokens = 8}}};

TEST(Simulation, WhatARecorderMeasuresOfGuessesPredictsTheRun) {
  const ToyPlan toys = busy_plan(/*iterations=*/64);
  Costs known = busy_costs();
  known.guesses["rollout"] = {.drafted_per_step = 2, .kept_per_step = 1.2};
  CostRecorder recorder(toys.plan);
  const SimulationResult measured = simulate(toys.plan, known, {&recorder});
  EXPECT_LT(measured.rollout_seconds, 0.9 * simulate(toys.plan, busy_costs()).rollout_seconds);
  recorder.reported({.iteration = 63,
                     .metrics = {{"engine/guessed_steps", 500}, {"engine/drafted_tokens", 1000}, {"engine/kept_drafts", 600}}});
  Costs costs = recorder.costs();
  costs.nodes["keep"].kept_share = known.nodes.at("keep").kept_share;
  EXPECT_EQ(parse_costs(costs_json(costs), "the test").nodes.at("rollout").kept_per_step, 1.2);
  const std::vector<std::string> notes = take_guesses(toys.plan, kGuesses, std::nullopt, costs);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("'rollout' guesses as it was measured: 1.20 of 2.00")));
  const SimulationResult predicted = simulate(toys.plan, costs);
  EXPECT_NEAR(predicted.seconds, measured.seconds, 0.03 * measured.seconds);
  EXPECT_NEAR(predicted.rollout_seconds, measured.rollout_seconds, 0.03 * measured.rollout_seconds);
}

TEST(Simulation, GuessesAreAssumedOrTakenOverAndItSaysSo) {
  const ToyPlan toys = busy_plan();
  Costs costs = busy_costs();
  EXPECT_THAT(take_guesses(toys.plan, kGuesses, std::nullopt, costs), ElementsAre(HasSubstr("it is taken to guess nothing")));
  EXPECT_EQ(costs.guesses.size(), 0U);
  EXPECT_THAT(take_guesses(toys.plan, kGuesses, 0.7, costs),
              ElementsAre(HasSubstr("a share of 0.70 taken to be right, 1.53 of 3.00")));
  EXPECT_NEAR(costs.guesses.at("rollout").kept_per_step, 0.7 + 0.7 * 0.7 + 0.7 * 0.7 * 0.7, 1e-12);
  EXPECT_TRUE(costs.guesses.at("rollout").apart);
  EXPECT_THAT(take_guesses(toys.plan, kGuesses, 1, costs), ElementsAre(HasSubstr("8.00 of 8.00")));
  EXPECT_THAT(take_guesses(toys.plan, kGuesses, 0.2, costs), ElementsAre(HasSubstr("0.00 of 0.00")));
  costs.nodes["rollout"].drafted_per_step = 2;
  EXPECT_THAT(take_guesses(toys.plan, kGuesses, 0.7, costs), ElementsAre(HasSubstr("what they cost is in its times")));
  EXPECT_FALSE(costs.guesses.at("rollout").apart);
  EXPECT_THAT(take_guesses(toys.plan, {}, std::nullopt, costs), ElementsAre(HasSubstr("guessed tokens where it was measured")));
  EXPECT_EQ(costs.guesses.size(), 0U);
}

TEST(Simulation, TheRecorderLearnsWhatAFilterKeepsFromTheReports) {
  const ToyPlan toys = busy_plan();
  CostRecorder recorder(toys.plan);
  for (int64_t iteration = 0; iteration < 4; ++iteration) {
    recorder.reported(
        {.iteration = iteration,
         .metrics = {{"filter/keep/groups_kept", 5}, {"filter/keep/groups_dropped", 3}, {"filter/keep/groups_surplus", 1}}});
  }
  const Costs costs = recorder.costs();
  EXPECT_EQ(costs.iterations, 4);
  EXPECT_DOUBLE_EQ(costs.nodes.at("keep").kept_share, 6.0 / 9);
}

TEST(EstimatedCosts, CountTheOperationsOfTheModels) {
  const ToyPlan toys = busy_plan();  // one parameter
  const Costs costs = estimated_costs(toys.plan, 20);
  EXPECT_DOUBLE_EQ(costs.nodes.at("rollout").per_sampled_token_us, 2 / 20e3);
  EXPECT_DOUBLE_EQ(costs.nodes.at("train").per_token_us, 6 / 20e3);
  EXPECT_DOUBLE_EQ(costs.nodes.at("mix").per_token_us, 0);
  EXPECT_EQ(simulate(toys.plan, costs).iterations, 20);
}

TEST(Simulation, TellsHowManyIterationsHaveEnded) {
  std::vector<int64_t> told;
  simulate(busy_plan().plan, busy_costs(), {}, [&](int64_t ended) { told.push_back(ended); });
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(), 20);
  EXPECT_TRUE(std::ranges::is_sorted(told, std::ranges::less_equal())) << "each number is told once";
}

TEST(EstimatedCosts, LeaveOutTheExpertsThatATokenDoesNotGoThrough) {
  ToyPlan toys = busy_plan();
  for (PlanModel& model : toys.plan.models) model.facts.parameters = 10, model.facts.idle_parameters = 7;
  EXPECT_DOUBLE_EQ(estimated_costs(toys.plan, 20).nodes.at("rollout").per_sampled_token_us, 3 * 2 / 20e3);
}

}  // namespace
}  // namespace sluice::engine::simulation_test
