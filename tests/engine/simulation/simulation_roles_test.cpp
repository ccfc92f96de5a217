#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "engine/check/check.h"
#include "engine/simulation/simulation.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/simulation_world.h"
#include "tests/engine/spec_builder.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_nodes.h"

// A simulation of ranks that train and ranks that sample for them, against times that were worked out by hand.
namespace sluice::engine::simulation_roles_test {
namespace {

using testing::ToyPlan;

constexpr double kUs = 1e-6;

struct Split {
  int training = 1, sampling = 1;
  int64_t lag = 0, iterations = 1, groups = 1;
  int64_t wire_bytes = 0, gradient_bytes = 0;
  int64_t ranks_per_host = 8;
};

/// Each sample takes 20 us, a micro-batch 100 us, a step 50 us and its publication 30 us. A message takes 150 us, and the bytes
/// of messages and columns next to nothing: a microsecond is 10^6 bytes. Between hosts a message takes 300 us, a byte ten times
/// as long.
SimulationResult simulated(const Split& split) {
  PipelineBuilder builder = testing::toy_pipeline(split.iterations, split.groups, 64, "rollout", /*trained=*/true);
  const std::string policy = "policy";
  builder.node("train", "toy_train", {"rollout"}, {{"model", policy}, {"reads", std::string("drawn")}}, "train");
  builder.node("publish", "toy_publish", {"train"}, {{"model", policy}}, "train");
  builder.role("train", {{"ranks", int64_t{split.training}}}).role("rollout", {{"ranks", int64_t{split.sampling}}});
  builder.set("schedule", "policy_lag", split.lag);
  Table network;
  network.entries.push_back({"host_latency_microseconds", {}, {.data = 150.0, .where = {}, .base = {}}});
  network.entries.push_back({"host_gigabytes_per_second", {}, {.data = 1000.0, .where = {}, .base = {}}});
  network.entries.push_back({"latency_microseconds", {}, {.data = 300.0, .where = {}, .base = {}}});
  network.entries.push_back({"gigabytes_per_second", {}, {.data = 100.0, .where = {}, .base = {}}});
  network.entries.push_back({"ranks_per_host", {}, {.data = split.ranks_per_host, .where = {}, .base = {}}});
  builder.set("cluster", "network", network);
  ToyPlan made = testing::toy_plan(builder, /*ranks=*/0);
  made.plan.models.front().facts.wire_bytes = split.wire_bytes;
  made.plan.models.front().facts.gradient_bytes = split.gradient_bytes;
  Costs costs = testing::costs_with_lengths(1, 2);
  costs.nodes["rollout"] = {.per_sampled_token_us = 10};
  costs.nodes["train"] = {.per_batch_us = 100, .per_iteration_us = 50};
  costs.nodes["publish"] = {.per_iteration_us = 30};
  return simulate(made.plan, testing::on_the_cores_of(made.plan, std::move(costs)));
}

/// What two more iterations take.
double seconds_of_two(Split split) {
  split.iterations = 4;
  const double four = simulated(split).seconds;
  split.iterations = 6;
  return simulated(split).seconds - four;
}

constexpr int64_t kMillisecondOfWeights = 1'000'000'000;

// The question, its answer, the grant and the prompt; sampling; the word that a group is made, the grant and the group;
// training, the step and its publication, with nobody to meet; the weights.
constexpr double kMade = 4 * 150 + 20 + 3 * 150, kTrained = 100 + 50 + 30;
constexpr double kOnce = kMade + kTrained + 150 + 1000;

TEST(SimulationRoles, WithoutLagEachWaitsForTheOther) {
  EXPECT_NEAR(seconds_of_two({.lag = 0, .wire_bytes = kMillisecondOfWeights}), 2 * kOnce * kUs, 1 * kUs);
}

// Groups are made all the time: after each the rank that trains says that it is at the next iteration.
TEST(SimulationRoles, WithALagTheyWorkAtTheSameTime) {
  EXPECT_NEAR(seconds_of_two({.lag = 1, .wire_bytes = kMillisecondOfWeights}), 2 * (kMade + 150) * kUs, 1 * kUs);
}

TEST(SimulationRoles, TellWhatEachWaitsFor) {
  const SimulationResult result = simulated({.lag = 0, .iterations = 50, .wire_bytes = kMillisecondOfWeights});
  ASSERT_FALSE(result.stall);
  ASSERT_EQ(result.ranks->roles.size(), 2u);
  const SimulationResult::Role &train = result.ranks->roles[0], &rollout = result.ranks->roles[1];
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(rollout.name, "rollout");
  EXPECT_NEAR(train.busy.mean, kTrained / kOnce, 1e-3);
  EXPECT_NEAR(rollout.busy.mean, 20 / kOnce, 1e-3);
  EXPECT_NEAR(train.waits_for_weights.mean, 0, 1e-9);
  // It has heard that there is no other group after the first one's four messages and two more, and the weights set out after
  // the publication.
  EXPECT_NEAR(rollout.waits_for_weights.mean, (kMade + kTrained - 6 * 150) / kOnce, 1e-2);
  EXPECT_GT(rollout.waits_for_network.mean, 1150 / kOnce);
  EXPECT_NEAR(result.ranks->weights.seconds, 50 * 1150 * kUs, 1 * kUs);
  EXPECT_DOUBLE_EQ(result.ranks->weights.bytes, 50.0 * kMillisecondOfWeights);
  EXPECT_NEAR(result.ranks->columns.seconds, 50 * 4 * 150 * kUs, 5 * kUs);  // of a prompt and a group, with the grant of each
  for (const SimulationResult::Role& role : result.ranks->roles) {
    const double all = role.busy.mean + role.waits_for_weights.mean + role.waits_for_groups.mean + role.waits_for_others.mean +
                       role.waits_for_network.mean;
    EXPECT_LE(all, 1 + 1e-9);
    EXPECT_GT(all, 0.98);
  }
  ASSERT_EQ(result.executors.size(), 2u);  // each as on the ranks that have it
  for (const SimulationResult::Executor& executor : result.executors)
    EXPECT_NEAR(executor.busy_seconds / result.seconds, (executor.name == "train/cpu" ? kTrained : 20) / kOnce, 1e-3)
        << executor.name;
}

// Three ranks share out what two ask for, beside what these train meanwhile; and one does so for both.
TEST(SimulationRoles, RanksWithFrozenModelsShareOutWhatIsAskedOfThem) {
  Registry registry;
  testing::add_toy_nodes(registry);
  std::map<std::string, std::string> on = testing::kOnRoles;
  on["reference"] = "score";
  for (const int ranks : {1, 3}) {
    const std::string roles =
        "[cluster.roles.train]\nranks = 2\n[cluster.roles.rollout]\nranks = 1\n[cluster.roles.score]\nranks = " +
        std::to_string(ranks) + "\n";
    const Plan plan = check(testing::spec_of(testing::ppo_on_roles_text(roles, on)), registry).plan.value();
    Costs costs = testing::costs_with_lengths(1, 2);
    for (const PlanNode& node : plan.nodes) costs.nodes[node.name] = {.per_batch_us = 1};
    costs.nodes["reference"] = {.per_batch_us = 600};
    const SimulationResult result = simulate(plan, testing::on_the_cores_of(plan, std::move(costs)));
    ASSERT_FALSE(result.stall);
    EXPECT_EQ(result.ranks->forward, ranks);
    const auto node = std::ranges::find(result.nodes, "reference", &SimulationResult::Node::name);
    const double busy = static_cast<double>(node->micro_batches) * 600 * kUs / ranks;  // of each rank of the role
    EXPECT_NEAR(node->busy_seconds, busy, 1e-9);
    ASSERT_EQ(result.ranks->roles.size(), 3u);
    EXPECT_EQ(result.ranks->roles.back().name, "score");
    EXPECT_NEAR(result.ranks->roles.back().busy.mean, busy / result.seconds, 1e-9);
    EXPECT_LT(result.ranks->roles.front().busy.mean, 0.5);  // waiting for answers is no work
  }
}

// With a lag the next iteration comes to its trainer while that waits for other ranks, and is put aside.
TEST(SimulationRoles, WhatIsPutAsideIsNoWork) {
  const SimulationResult result = simulated({.lag = 1, .iterations = 50, .wire_bytes = kMillisecondOfWeights});
  EXPECT_NEAR(result.train_seconds, 50 * 150 * kUs, 1e-9);
  EXPECT_NEAR(result.rollout_seconds, 50 * 20 * kUs, 1e-9);
}

// One copy leaves those that train, and the others hand it on.
TEST(SimulationRoles, WeightsTakeTheSameTimeToAnyNumberOfRanks) {
  const Split one{.groups = 1, .wire_bytes = kMillisecondOfWeights};
  Split seven = one;
  seven.sampling = 7;
  EXPECT_NEAR(simulated(seven).ranks->weights.seconds, simulated(one).ranks->weights.seconds, 1e-9);
}

TEST(SimulationRoles, WeightsGoByTheSlowestLinkThereIs) {
  EXPECT_NEAR(simulated({.wire_bytes = kMillisecondOfWeights}).ranks->weights.seconds, 1150 * kUs, 1e-9);
  EXPECT_NEAR(simulated({.wire_bytes = kMillisecondOfWeights, .ranks_per_host = 1}).ranks->weights.seconds, 10'300 * kUs, 1e-9);
}

// Ranks 0 and 1 train, on one host.
TEST(SimulationRoles, GradientsStayOnTheHostsOfThoseThatTrain) {
  const auto gradients = [](int64_t ranks_per_host, int64_t bytes) {
    const Split split{.training = 2, .sampling = 2, .groups = 4, .gradient_bytes = bytes, .ranks_per_host = ranks_per_host};
    return simulated(split).seconds;
  };
  const auto take = [&](int64_t ranks_per_host) {
    return gradients(ranks_per_host, kMillisecondOfWeights) - gradients(ranks_per_host, 0);
  };
  EXPECT_NEAR(take(2), 1000 * kUs, 1e-9);
  EXPECT_NEAR(take(1), 10'000 * kUs, 1e-9);
}

TEST(SimulationRoles, OnlyRanksThatTrainAddGradients) {
  const auto with_gradients = [](int training, int64_t bytes) {
    return simulated({.training = training, .sampling = 2, .groups = 4, .gradient_bytes = bytes}).seconds;
  };
  EXPECT_NEAR(with_gradients(1, kMillisecondOfWeights), with_gradients(1, 0), 1e-9);
  EXPECT_NEAR(with_gradients(2, kMillisecondOfWeights) - with_gradients(2, 0), 1000 * kUs, 1e-9);
  EXPECT_NEAR(with_gradients(4, kMillisecondOfWeights) - with_gradients(4, 0), 1500 * kUs, 1e-9);
}

TEST(SimulationRoles, MoreRanksThatSampleTakeLess) {
  const auto seconds = [](int sampling) { return simulated({.sampling = sampling, .iterations = 3, .groups = 8}).seconds; };
  EXPECT_LT(seconds(4), seconds(1));
}

std::string text_of(const SimulationResult& result) {
  std::string text = std::to_string(result.seconds) + " " + std::to_string(result.tokens);
  for (const SimulationResult::Role& role : result.ranks->roles)
    text += " " + std::to_string(role.busy.mean) + " " + std::to_string(role.waits_for_groups.most);
  for (const double seconds : result.iteration_seconds) text += " " + std::to_string(seconds);
  return text;
}

// With the least budgets, whatever the pipeline: nothing stalls, each simulation is the same twice, and there are the samples
// of one process.
TEST(SimulationRoles, OfAnyPipelineComeToTheirEnd) {
  Registry registry;
  toy::register_toys(registry);
  toy::register_tallies(registry);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    Costs costs = testing::costs_with_lengths(1, shape.worst - 1);
    for (int64_t length = 1; length < shape.worst; ++length) costs.lengths.front().response.add(length);
    costs.nodes["rollout"] = {.per_step_us = 40, .per_sampled_token_us = 7};
    costs.nodes["train"] = {.per_batch_us = 90, .per_iteration_us = 60};
    costs.nodes["filter"] = {.kept_share = 0.5};
    const CheckResult alone = check(toy::ranks_pipeline(shape, seed), registry, 1);
    ASSERT_TRUE(alone.plan) << render(alone.problems);
    const SimulationResult expected = simulate(*alone.plan, costs);
    shape.training_ranks = 1 + static_cast<int>(seed % 3);
    shape.sampling_ranks = 1 + static_cast<int>(seed / 3 % 3);
    shape.budget = toy::least_budget(shape, seed, registry, 0);
    shape.sampling_budget = shape.samples * shape.worst * (1 + static_cast<int64_t>(seed % 2));
    const CheckResult apart = check(toy::ranks_pipeline(shape, seed), registry);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    const SimulationResult result = simulate(*apart.plan, costs);
    ASSERT_FALSE(result.stall) << render(*result.stall);
    ASSERT_EQ(result.iterations, expected.iterations);
    ASSERT_EQ(result.tokens, expected.tokens);
    ASSERT_EQ(text_of(result), text_of(simulate(*apart.plan, costs)));
  }
}

}  // namespace
}  // namespace sluice::engine::simulation_roles_test
