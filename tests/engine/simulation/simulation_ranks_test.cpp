#include <gtest/gtest.h>

#include <algorithm>

#include "engine/observe/engine_metrics.h"
#include "engine/run/cost_recorder.h"
#include "engine/simulation/simulation.h"
#include "tests/engine/simulation_world.h"

// A simulation of several ranks, against times that were worked out by hand.
namespace sluice::engine::simulation_ranks_test {
namespace {

using testing::ToyPlan;

constexpr double kUs = 1e-6;

/// A network on which a message takes 150 us, and a byte a nanosecond.
PipelineBuilder& with_network(PipelineBuilder& builder) {
  Table network;
  network.entries.push_back({"host_latency_microseconds", {}, {.data = 150.0, .where = {}, .base = {}}});
  network.entries.push_back({"host_gigabytes_per_second", {}, {.data = 1.0, .where = {}, .base = {}}});
  return builder.set("cluster", "network", network);
}

ToyPlan plan_of(PipelineBuilder builder, int ranks) { return testing::toy_plan(with_network(builder), ranks); }

SimulationResult simulated(const ToyPlan& made, Costs costs) {
  return simulate(made.plan, testing::on_the_cores_of(made.plan, std::move(costs)));
}

/// Each sample of 2 tokens takes 20 us.
Costs costs() {
  Costs costs = testing::costs_with_lengths(1, 2);
  costs.nodes["rollout"] = {.per_sampled_token_us = 10};
  return costs;
}

TEST(SimulationRanks, EachSamplesTheGroupsOfItsSlots) {
  const auto pipeline = [](int64_t groups) { return testing::toy_pipeline(1, groups, 64, "cpu"); };
  const SimulationResult alone = simulated(plan_of(pipeline(2), 1), costs());
  const SimulationResult shared = simulated(plan_of(pipeline(4), 2), costs());
  EXPECT_DOUBLE_EQ(alone.seconds, 40 * kUs);
  EXPECT_NEAR(shared.seconds, alone.seconds + 150 * kUs, 1e-9);  // and the metrics of the iteration
  EXPECT_EQ(shared.sampled_tokens, 2 * alone.sampled_tokens);
  EXPECT_EQ(shared.iterations, 1);
}

// What is trained waits for the totals, then for the gradients: a message to the owner of their range, one back, and a ring's
// bytes.
TEST(SimulationRanks, GradientsTakeTimeOnTheNetwork) {
  const auto trained = [](int64_t groups, int ranks) {
    PipelineBuilder builder = testing::toy_pipeline(1, groups, 64, "cpu", /*trained=*/true);
    testing::add_training(builder, "rollout");
    ToyPlan made = plan_of(std::move(builder), ranks);
    made.plan.models.front().facts.gradient_bytes = 4000;
    Costs with_training = costs();
    with_training.nodes["train"] = {.per_batch_us = 100, .per_iteration_us = 50};
    return simulated(made, with_training);
  };
  const SimulationResult alone = trained(1, 1), two = trained(2, 2), four = trained(4, 4);
  EXPECT_NEAR(two.seconds - alone.seconds, (150 + 2 * 150 + 4.0 + 150) * kUs, 1e-9);   // 2 (N - 1) / N of 4000 bytes
  EXPECT_NEAR(four.seconds - alone.seconds, (150 + 2 * 150 + 6.0 + 150) * kUs, 1e-9);  // likewise
  EXPECT_NEAR(two.ranks->network_seconds, two.seconds - alone.seconds, 1e-9);
  EXPECT_DOUBLE_EQ(two.ranks->waits_for_others.most, 0);
}

// A barrier meets before each of its steps and before its end; its work is in the steps.
TEST(SimulationRanks, ABarrierMeetsAtEachStep) {
  const auto whitened = [](int64_t groups, int ranks, int64_t steps) {
    PipelineBuilder builder = testing::toy_pipeline(1, groups, 64, "cpu");
    builder.node("record", "tally_record", {"rollout"}, {});
    builder.node("whiten", "tally_whiten", {"record"}, {{"steps", steps}});
    Costs with_barrier = costs();
    with_barrier.nodes["whiten"] = {.per_batch_us = 60, .per_iteration_us = 10};
    return simulated(plan_of(std::move(builder), ranks), with_barrier).seconds;
  };
  for (const int64_t steps : {1, 3}) {
    const double record_and_whiten_and_metrics = 150 + static_cast<double>(steps + 1) * 150 + 150;
    EXPECT_NEAR(whitened(2, 2, steps) - whitened(1, 1, steps), record_and_whiten_and_metrics * kUs, 1e-9) << steps;
  }
}

// One of them has two groups of three.
TEST(SimulationRanks, TellWhoWaitsForWhom) {
  const SimulationResult uneven = simulated(plan_of(testing::toy_pipeline(4, 3, 64, "cpu"), 2), costs());
  const SimulationResult::Ranks& ranks = uneven.ranks.value();
  EXPECT_EQ(ranks.count, 2);
  EXPECT_GT(ranks.waits_for_others.most, 0);
  EXPECT_GT(ranks.busy.most, 1.9 * ranks.busy.least);
  EXPECT_LE(ranks.busy.mean + ranks.waits_for_others.mean + ranks.waits_for_network.mean, 1 + 1e-9);
}

// Lengths and verdicts depend on the seed, not on who has a group.
TEST(SimulationRanks, HaveTheSamplesOfOneProcess) {
  Costs varied = costs();
  for (int64_t length = 1; length <= 3; ++length) varied.lengths.front().response.add(length);
  varied.nodes["filter"] = {.kept_share = 0.4};
  const auto tokens = [&](int ranks) {
    PipelineBuilder builder = testing::toy_pipeline(3, 8, 256, "cpu");
    Array reads{{.data = std::string("drawn"), .where = {}, .base = {}}};
    builder.set("cluster", "slots", int64_t{4});
    builder.node("filter", "toy_filter", {"rollout"}, {{"reads", reads}, {"most_draws", int64_t{3}}});
    testing::add_mix(builder, "after", "filter", "cpu:1", /*barrier=*/true);
    const SimulationResult result = simulated(plan_of(std::move(builder), ranks), varied);
    EXPECT_FALSE(result.stall) << ranks;
    return std::pair{result.tokens, result.iterations};
  };
  EXPECT_EQ(tokens(2), tokens(1));
  EXPECT_EQ(tokens(4), tokens(1));
}

TEST(SimulationRanks, ThereMayBeAThousand) {
  PipelineBuilder builder = testing::toy_pipeline(2, 2048, 64, "cpu", /*trained=*/true);
  testing::add_training(builder, "rollout");
  const SimulationResult result = simulated(plan_of(std::move(builder), 1024), costs());
  EXPECT_EQ(result.ranks->count, 1024);
  EXPECT_EQ(result.iterations, 2);
  EXPECT_EQ(result.sampled_tokens, 2 * 2048 * 2);
}

// What a run on several ranks has measured: an end that waited for other ranks is one end, in parts.
TEST(CostRecorderOnRanks, AddsUpTheWorkBetweenMeetings) {
  PipelineBuilder builder = testing::toy_pipeline(4, 1, 64, "cpu");
  testing::add_mix(builder, "mix", "rollout", "cpu", /*barrier=*/true);
  const ToyPlan made = testing::toy_plan(builder);
  const int node = made.plan.index_of("mix");
  CostRecorder recorder(made.plan);
  for (int64_t iteration = 0; iteration < 4; ++iteration) {
    const int64_t begin = iteration * 1'000'000;
    recorder.ended({.node = node, .iteration = iteration, .begin_ns = begin, .end_ns = begin + 30'000});
    recorder.ended(
        {.node = node, .iteration = iteration, .ends_iteration = true, .begin_ns = begin + 500'000, .end_ns = begin + 510'000});
  }
  EXPECT_NEAR(recorder.costs().nodes.at("mix").per_iteration_us, 40, 1e-6);
}

}  // namespace
}  // namespace sluice::engine::simulation_ranks_test
