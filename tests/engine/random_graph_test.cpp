#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "engine/pipeline_builder.h"
#include "engine/run.h"
#include "tests/engine/toy_world.h"

namespace sluice::engine {
namespace {

using toy::mix;
using toy::name_hash;

/// A random pipeline of toys, in a form that both the engine and the sequential interpreter understand.
struct World {
  struct Mix {
    std::string name;
    std::vector<std::string> inputs;
    std::vector<std::string> reads;
    bool barrier = false;
    std::string on;
  };

  int64_t iterations = 1, groups = 1, samples = 1, worst = 4, lag = 0, budget = 0, micro_batch = 0;
  bool trained = false;
  std::vector<Mix> mixes;  // in topological order; each writes a column of its own name
  std::string train_input;
  std::string rollout_on;
};

template <class T>
const T& any_of_these(const std::vector<T>& choices, RandomStream& random) {
  return choices[random.below(choices.size())];
}

World random_world(uint64_t seed) {
  RandomStream random(seed, 0);
  World world;
  world.iterations = 1 + static_cast<int64_t>(random.below(5));
  world.groups = 1 + static_cast<int64_t>(random.below(9));
  world.samples = 1 + static_cast<int64_t>(random.below(3));
  world.worst = 3 + static_cast<int64_t>(random.below(6));
  world.trained = random.below(4) > 0;
  world.rollout_on = any_of_these<std::string>({"cpu", "cpu:1"}, random);
  std::map<std::string, std::set<std::string>> columns{{"rollout", {"drawn"}}};  // alive behind each node
  std::vector<std::string> nodes{"rollout"};
  const size_t count = 1 + random.below(6);
  bool barrier = false;
  for (size_t i = 0; i < count; ++i) {
    World::Mix mix{.name = "mix" + std::to_string(i)};
    mix.on = any_of_these<std::string>({"cpu", "cpu:1"}, random);
    mix.barrier = random.below(5) == 0;
    barrier |= mix.barrier;
    std::set<std::string> inputs, alive;
    for (size_t k = 0; k <= random.below(3); ++k) inputs.insert(any_of_these(nodes, random));
    for (const std::string& input : inputs) alive.insert(columns[input].begin(), columns[input].end());
    mix.inputs.assign(inputs.begin(), inputs.end());
    const std::vector<std::string> choices(alive.begin(), alive.end());
    std::set<std::string> reads;
    for (size_t k = 0; k <= random.below(3); ++k) reads.insert(any_of_these(choices, random));
    mix.reads.assign(reads.begin(), reads.end());
    alive.insert(mix.name);
    columns[mix.name] = alive;
    nodes.push_back(mix.name);
    world.mixes.push_back(std::move(mix));
  }
  world.train_input = world.mixes.back().name;
  if (world.trained) world.lag = static_cast<int64_t>(random.below(3));
  const int64_t group = world.samples * world.worst;
  world.micro_batch = group * (1 + static_cast<int64_t>(random.below(3)));
  const int64_t needed = barrier ? world.groups * group : std::min(world.micro_batch, world.groups * group);
  world.budget = needed + static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * group)));
  return world;
}

PipelineSpec spec_of(const World& world, uint64_t seed, int64_t pause_us) {
  PipelineBuilder builder("world", world.iterations);
  builder.budget(world.budget, world.micro_batch).set("pipeline", "seed", static_cast<int64_t>(seed)).set("runtime", "cores", int64_t{2});
  if (world.lag > 0) builder.set("schedule", "policy_lag", world.lag);
  if (world.trained) builder.model("policy", {});
  PipelineBuilder::Params rollout{{"samples_per_group", world.samples}, {"worst_sample_tokens", world.worst}, {"pause_us", pause_us}};
  if (world.trained) rollout.emplace_back("model", std::string("policy"));
  builder.node("source", "toy_source", {}, {{"groups_per_iteration", world.groups}});
  builder.node("rollout", "toy_rollout", {"source"}, rollout, world.rollout_on);
  for (const World::Mix& mix : world.mixes) {
    Array reads;
    for (const std::string& column : mix.reads) reads.push_back({.data = column, .where = {}, .base = {}});
    builder.node(mix.name, "toy_mix", mix.inputs,
                 {{"reads", reads}, {"writes", mix.name}, {"barrier", mix.barrier}, {"pause_us", pause_us}}, mix.on);
  }
  if (world.trained) {
    builder.node("train", "toy_train", {world.train_input}, {{"model", std::string("policy")}, {"reads", world.train_input}});
    builder.node("publish", "toy_publish", {"train"}, {{"model", std::string("policy")}});
  }
  return builder.build();
}

using Row = std::map<std::string, double>;

/// The sequential program: one iteration after the other, one node after the other, no micro-batches, no threads.
std::vector<Row> interpret(const World& world) {
  std::vector<Row> rows;
  std::vector<uint64_t> versions{1};
  for (int64_t iteration = 0; iteration < world.iterations; ++iteration) {
    const int64_t version = world.trained ? std::max<int64_t>(0, iteration - world.lag) : 0;
    const uint64_t weights = versions[static_cast<size_t>(version)];
    std::map<std::string, std::vector<uint64_t>> columns;
    Row row{{"tokens", 0}};
    for (int64_t group = 0; group < world.groups; ++group) {
      const uint64_t origin = mix(static_cast<uint64_t>(iteration), static_cast<uint64_t>(group));
      for (int64_t sample = 0; sample < world.samples; ++sample) {
        const uint64_t drawn = mix(mix(origin, static_cast<uint64_t>(sample)), weights);
        columns["drawn"].push_back(drawn);
        row["tokens"] += static_cast<double>(toy::sample_tokens(drawn, world.worst));
      }
    }
    for (const World::Mix& node : world.mixes) {
      const uint64_t name = name_hash(node.name);
      uint64_t fold = mix(name, static_cast<uint64_t>(iteration));
      std::vector<uint64_t>& out = columns[node.name];
      for (size_t s = 0; s < columns["drawn"].size(); ++s) {
        uint64_t value = name;
        for (const std::string& read : node.reads) value = mix(value, columns[read][s]);
        out.push_back(value);
        fold = mix(fold, value);
      }
      if (node.barrier) {
        for (uint64_t& value : out) value = mix(value, fold);
      }
      row[node.name] = static_cast<double>(fold >> 12);
    }
    if (world.trained) {
      uint64_t gradient = 0;
      for (const uint64_t value : columns[world.train_input]) gradient = mix(gradient, value);
      versions.push_back(mix(versions.back(), gradient));
      row["weights"] = static_cast<double>(versions.back() >> 12);
    }
    rows.push_back(row);
  }
  return rows;
}

class RandomGraph : public testing::TestWithParam<uint64_t> {};

// Forks, joins, barriers, lags and budgets at random, pauses at random: what comes out is what the sequential program gives,
// nothing stalls, and the budget holds at every step (TokenBudget itself throws when it does not).
TEST_P(RandomGraph, GivesTheSequentialProgramsResult) {
  Registry registry;
  toy::register_toys(registry);
  for (uint64_t seed = GetParam() * 100; seed < GetParam() * 100 + 100; ++seed) {
    SCOPED_TRACE(seed);
    const World world = random_world(seed);
    const CheckResult checked = check(spec_of(world, seed, seed % 2 == 0 ? 0 : 200), registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    std::vector<IterationReport> reports;
    engine::Run run(*checked.plan, {.folder = {}, .on_executor_start = {}, .on_iteration = [&](const IterationReport& r) { reports.push_back(r); }});
    const RunSummary summary = run.execute();
    ASSERT_EQ(summary.end, RunEnd::kDone);
    EXPECT_EQ(run.status().tokens_in_flight, 0) << "credit was lost";
    const std::vector<Row> expected = interpret(world);
    ASSERT_EQ(reports.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(reports[i].iteration, static_cast<int64_t>(i));
      EXPECT_LE(reports[i].figure("tokens_in_flight_max"), static_cast<double>(world.budget));
      EXPECT_LE(reports[i].figure("column_bytes_max"), static_cast<double>(checked.plan->memory.column_bytes));
      for (const auto& [name, value] : expected[i]) EXPECT_EQ(reports[i].figure(name), value) << name << " of iteration " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, testing::Range<uint64_t>(0, 10));

// Whatever node fails, and wherever: the run ends, says which node and which micro-batch, and gives no later iteration out.
TEST(RandomGraph, EndsAndNamesTheNodeThatFails) {
  Registry registry;
  toy::register_toys(registry);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const World world = random_world(seed);
    RandomStream random(seed, 1);
    const auto culprit = world.mixes[random.below(world.mixes.size())].name;
    const auto iteration = static_cast<int64_t>(random.below(static_cast<uint64_t>(world.iterations)));
    PipelineSpec spec = spec_of(world, seed, 50);
    for (NodeSpec& node : spec.nodes) {
      if (node.name.text == culprit) node.params.entries.push_back({"fail_in_iteration", {}, {.data = iteration, .where = {}, .base = {}}});
    }
    const CheckResult checked = check(spec, registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    engine::Run run(*checked.plan, {});
    const RunSummary summary = run.execute();
    ASSERT_EQ(summary.end, RunEnd::kFailed);
    EXPECT_LE(summary.iterations, iteration + world.lag + 1);
    try {
      std::rethrow_exception(summary.error);
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("node '" + culprit + "' failed"));
      EXPECT_THAT(error.what(), testing::HasSubstr("iteration " + std::to_string(iteration)));
      EXPECT_THAT(error.what(), testing::HasSubstr("as asked"));
    }
  }
}

// A trainer's packets wait for a publication that a failure makes impossible: they must not keep the run from ending.
TEST(Failure, EndsARunWhoseTrainerWaitsForAPublication) {
  Registry registry;
  toy::register_toys(registry);
  const Array drawn{{.data = std::string("drawn"), .where = {}, .base = {}}};
  for (int repeat = 0; repeat < 20; ++repeat) {
    PipelineBuilder builder("world", 8);
    builder.budget(64, 8).set("runtime", "cores", int64_t{2}).set("schedule", "policy_lag", int64_t{3}).model("policy", {});
    builder.node("source", "toy_source", {}, {{"groups_per_iteration", int64_t{4}}});
    builder.node("rollout", "toy_rollout", {"source"}, {{"model", std::string("policy")}}, "cpu:1");
    builder.node("train", "toy_train", {"rollout"}, {{"model", std::string("policy")}, {"reads", std::string("drawn")}});
    builder.node("late", "toy_mix", {"train"},
                 {{"reads", drawn}, {"writes", std::string("late")}, {"barrier", true}, {"pause_us", int64_t{2000}}, {"fail_in_iteration", int64_t{1}}});
    builder.node("publish", "toy_publish", {"late"}, {{"model", std::string("policy")}});
    const CheckResult checked = check(builder.build(), registry);
    ASSERT_TRUE(checked.plan) << render(checked.problems);
    engine::Run run(*checked.plan, {});
    EXPECT_EQ(run.execute().end, RunEnd::kFailed);
  }
}

}  // namespace
}  // namespace sluice::engine
