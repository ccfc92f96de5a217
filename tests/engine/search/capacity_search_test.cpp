#include <gtest/gtest.h>

#include <iostream>
#include <optional>

#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "tests/engine/search/capacity_machine.h"
#include "tests/engine/search/machine_pipeline.h"

// For every small machine of a family, whatever the order of events, the sizes and the verdicts are: with the budget that `check`
// asks for no run stalls, and with one token less some run does. The machine that is searched knows nothing of the engine.
namespace sluice::engine::testing::capacity_search_test {
namespace {

/// Graphs by what they are to show.
std::vector<std::vector<Step>> graphs_without_filter() {
  const Step reader, idle{.reads = false}, barrier{.barrier = true}, idle_barrier{.reads = false, .barrier = true};
  const auto behind = [](Step step, std::vector<int> inputs) {
    step.inputs = std::move(inputs);
    return step;
  };
  return {
      {reader},
      {idle},
      {barrier},
      {idle_barrier},
      {reader, behind(reader, {0})},
      {barrier, behind(reader, {0})},
      {idle_barrier, behind(reader, {0})},
      {reader, behind(idle_barrier, {0})},
      {reader, behind(barrier, {0})},
      {reader, idle_barrier},
      {reader, barrier},
      {reader, reader, behind(idle, {0, 1})},
      {reader, barrier, behind(reader, {0, 1})},
      {reader, idle_barrier, behind(reader, {0, 1})},
      {idle, reader, behind(barrier, {0, 1}), behind(idle, {2})},
  };
}

std::vector<std::vector<Step>> training_graphs() {
  const Step values{.use = Use::kReadsLive}, train{.inputs = {0}, .use = Use::kTrains},
      publish{.inputs = {1}, .reads = false, .use = Use::kPublishes};
  const Step collecting{.inputs = {0}, .barrier = true, .use = Use::kTrains}, logging{};
  return {{values, train, publish},
          {values, collecting, publish},
          {values, train, publish, logging},
          {values, collecting, publish, logging}};
}

std::vector<std::vector<Step>> graphs_with_filter(int draws, int tenths) {
  const Step filter{.draws = draws, .oversample_tenths = tenths},
      blind{.reads = false, .draws = draws, .oversample_tenths = tenths};
  const Step kept{.inputs = {0}}, kept_barrier{.inputs = {0}, .barrier = true}, beside{}, beside_barrier{.barrier = true};
  const Step idle_barrier{.inputs = {0}, .reads = false, .barrier = true}, second{.inputs = {0}, .draws = 1};
  std::vector<std::vector<Step>> graphs{
      {filter},
      {filter, kept},
      {filter, kept_barrier},
      {filter, idle_barrier},
      {blind, kept_barrier},
      {filter, kept, beside},
      {filter, beside_barrier},
      {filter, kept_barrier, beside},
      {filter, second, {.inputs = {1}, .barrier = true}},
      {filter, kept, kept_barrier, {.inputs = {1, 2}}},
      {beside, {.inputs = {0}, .draws = draws, .oversample_tenths = tenths}, {.inputs = {1}, .barrier = true}},
  };
  if (draws > 1) {
    graphs.push_back(
        {{.draws = 1}, {.inputs = {0}, .draws = draws, .oversample_tenths = tenths}, {.inputs = {1}, .barrier = true}});
    graphs.push_back(
        {{.draws = 1}, {.inputs = {0}, .draws = draws, .oversample_tenths = tenths}, {.inputs = {0}, .barrier = true}});
  }
  return graphs;
}

class CapacitySearch : public ::testing::Test {
 protected:
  void SetUp() override { add_machine_types(registry_); }

  void TearDown() override {
    if (machines_ > 0) std::cout << machines_ << " machines, " << states_ << " states\n";
  }

  CheckResult checked(const Machine& machine, int budget) { return check_machine({.paths = {machine}}, {budget}, registry_); }

  std::string story(const Machine& machine, int budget, const Finding& finding) {
    std::string text = describe(machine) + "; budget " + std::to_string(budget) + "\n";
    replay(machine, budget, finding.trace, [&](const std::string& line) { text += "  " + line + "\n"; });
    return text;
  }

  void expect_exact(const Machine& machine) {
    const auto plan = checked(machine, 1000000).plan;
    ASSERT_TRUE(plan.has_value()) << describe(machine) << "\n" << render(checked(machine, 1000000).problems);
    const auto needed = static_cast<int>(plan->main_path().capacity.tokens_needed);
    ASSERT_TRUE(checked(machine, needed).plan.has_value()) << describe(machine);
    EXPECT_FALSE(checked(machine, needed - 1).plan.has_value()) << describe(machine);

    const Finding enough = search(machine, needed);
    ASSERT_FALSE(enough.stalls) << story(machine, needed, enough);
    expect_bounds(machine, *checked(machine, needed).plan, enough);

    if (needed > 1) {
      const Finding less = search(machine, needed - 1);
      ASSERT_TRUE(less.stalls) << "does not stall: " << describe(machine) << "; budget " << needed - 1;
      ASSERT_TRUE(replay(machine, needed - 1, less.trace, [](const std::string&) {})) << story(machine, needed - 1, less);
      states_ += less.states;
    }
    ++machines_;
    states_ += enough.states;
  }

  // For several slots the plan asks for enough, and its worst cases are bounds.
  void expect_enough(const Machine& machine) {
    const auto plan = checked(machine, 1000000).plan;
    ASSERT_TRUE(plan.has_value()) << describe(machine) << "\n" << render(checked(machine, 1000000).problems);
    const auto needed = static_cast<int>(plan->main_path().capacity.tokens_needed);
    const Finding enough = search(machine, needed);
    ASSERT_FALSE(enough.stalls) << story(machine, needed, enough);
    const PlanCapacity& capacity = checked(machine, needed).plan->main_path().capacity;
    EXPECT_EQ(enough.paths[0].drawn, capacity.drawn_groups) << describe(machine);
    EXPECT_LE(enough.paths[0].in_flight, capacity.in_flight_tokens) << describe(machine);
    EXPECT_LE(enough.paths[0].micro_batch, capacity.micro_batch_tokens) << describe(machine);
    ++machines_;
    states_ += enough.states;
  }

  // The other worst cases of the plan: never exceeded, and met where that does not need a larger budget.
  void expect_bounds(const Machine& machine, const Plan& plan, const Finding& found) {
    EXPECT_EQ(found.paths[0].drawn, plan.main_path().capacity.drawn_groups) << describe(machine);
    EXPECT_LE(found.paths[0].in_flight, plan.main_path().capacity.in_flight_tokens) << describe(machine);
    const bool any_reader = std::any_of(machine.steps.begin(), machine.steps.end(), [](const Step& step) { return step.reads; });
    EXPECT_EQ(found.paths[0].micro_batch, any_reader ? plan.main_path().capacity.micro_batch_tokens : 0) << describe(machine);
    for (size_t s = 0; s < machine.steps.size(); ++s) {
      const PlanNode& node = node_of_step(plan, 0, s);
      EXPECT_LE(found.paths[0].held[s], node.worst_tokens) << node.name << ": " << describe(machine);
    }
  }

  Registry registry_;
  int64_t machines_ = 0;
  int64_t states_ = 0;
};

struct Sizes {
  int least, worst;
};

TEST_F(CapacitySearch, WithoutFilter) {
  for (const auto& steps : graphs_without_filter()) {
    for (const auto& [least, worst] : {Sizes{1, 1}, Sizes{2, 2}, Sizes{1, 3}, Sizes{2, 3}}) {
      for (int micro_batch = worst; micro_batch <= 3 * worst + 1; micro_batch += 2) {
        for (int groups = 1; groups <= 3; ++groups) {
          for (const int iterations : {1, 2}) {
            expect_exact({.groups = groups,
                          .least = least,
                          .worst = worst,
                          .micro_batch = micro_batch,
                          .iterations = iterations,
                          .steps = steps});
          }
        }
      }
    }
  }
}

TEST_F(CapacitySearch, WithRollout) {
  for (const auto& steps : graphs_without_filter()) {
    for (const auto& [least, worst] : {Sizes{1, 2}, Sizes{2, 3}}) {
      for (int micro_batch = worst; micro_batch <= 3 * worst; ++micro_batch) {
        expect_exact({.groups = 3, .least = least, .worst = worst, .micro_batch = micro_batch, .rollout = true, .steps = steps});
      }
    }
  }
}

// The budget that worst cases need is exactly what credit on demand needs too.
TEST_F(CapacitySearch, OnDemand) {
  for (const auto& steps : graphs_without_filter()) {
    for (const auto& [least, worst] : {Sizes{1, 2}, Sizes{2, 3}, Sizes{1, 3}}) {
      for (int micro_batch = worst; micro_batch <= 3 * worst; micro_batch += worst - 1) {
        expect_exact({.groups = 3,
                      .least = least,
                      .worst = worst,
                      .micro_batch = micro_batch,
                      .rollout = true,
                      .on_demand = true,
                      .steps = steps});
      }
    }
  }
}

TEST_F(CapacitySearch, OnDemandWithTrainingAndLag) {
  for (const auto& steps : training_graphs()) {
    for (int lag = 0; lag <= 1; ++lag) {
      expect_exact({.groups = 2,
                    .least = 1,
                    .worst = 2,
                    .micro_batch = 3,
                    .iterations = 3,
                    .lag = lag,
                    .rollout = true,
                    .on_demand = true,
                    .steps = steps});
    }
  }
}

TEST_F(CapacitySearch, OnDemandWithRefill) {
  for (const auto& steps : graphs_with_filter(2, 15)) {
    for (int micro_batch = 3; micro_batch <= 7; micro_batch += 2) {
      expect_exact(
          {.groups = 2, .least = 2, .worst = 3, .micro_batch = micro_batch, .rollout = true, .on_demand = true, .steps = steps});
    }
  }
}

TEST_F(CapacitySearch, WithTrainingAndLag) {
  for (const auto& steps : training_graphs()) {
    for (int lag = 0; lag <= 2; ++lag) {
      for (int groups = 1; groups <= 2; ++groups) {
        expect_exact({.groups = groups,
                      .least = 1,
                      .worst = 2,
                      .micro_batch = 3,
                      .iterations = 3,
                      .lag = lag,
                      .rollout = true,
                      .steps = steps});
      }
    }
  }
}

TEST_F(CapacitySearch, WithFilter) {
  for (const auto& steps : graphs_with_filter(1, 10)) {
    for (const auto& [least, worst] : {Sizes{1, 1}, Sizes{2, 2}, Sizes{1, 3}, Sizes{2, 3}}) {
      for (int micro_batch = worst; micro_batch <= 3 * worst; micro_batch += worst == 1 ? 1 : worst - 1) {
        expect_exact({.groups = 3, .least = least, .worst = worst, .micro_batch = micro_batch, .steps = steps});
        expect_exact({.groups = 2, .least = least, .worst = worst, .micro_batch = micro_batch, .iterations = 2, .steps = steps});
      }
    }
  }
}

TEST_F(CapacitySearch, WithRefill) {
  for (const auto& [draws, tenths] : {std::pair{2, 10}, {2, 15}, {2, 20}, {3, 15}, {3, 25}}) {
    for (const auto& steps : graphs_with_filter(draws, tenths)) {
      for (const auto& [least, worst] : {Sizes{2, 2}, Sizes{2, 3}}) {
        for (int micro_batch = worst; micro_batch <= 3 * worst; micro_batch += worst - 1) {
          for (int groups = 1; groups <= 3; ++groups) {
            if (groups * draws > 6) continue;
            expect_exact({.groups = groups, .least = least, .worst = worst, .micro_batch = micro_batch, .steps = steps});
          }
        }
      }
    }
  }
}

// What a barrier after the filter holds depends on where micro-batches end: a last kept group may have to wait for company, and
// smaller groups may fill a micro-batch up to its last token.
TEST_F(CapacitySearch, WithRefillWhereMicroBatchesEndBadly) {
  for (const int micro_batch : {7, 8, 10, 11}) {
    for (const auto& [draws, tenths] : {std::pair{2, 16}, {2, 18}, {2, 20}, {3, 16}}) {
      expect_exact({.groups = 3,
                    .least = 2,
                    .worst = 3,
                    .micro_batch = micro_batch,
                    .steps = {{.draws = draws, .oversample_tenths = tenths}, {.inputs = {0}, .barrier = true}}});
    }
  }
}

// Micro-batches end where slots do, and each slot has a quota of its own.
TEST_F(CapacitySearch, WithSlots) {
  for (const int slots : {2, 3}) {
    for (const auto& [least, worst] : {Sizes{2, 2}, Sizes{1, 3}}) {
      for (int micro_batch = worst; micro_batch <= 3 * worst; micro_batch += worst) {
        const Machine sizes{.groups = 3, .least = least, .worst = worst, .micro_batch = micro_batch, .slots = slots};
        const auto with = [&](std::vector<Step> steps) {
          Machine machine = sizes;
          machine.steps = std::move(steps);
          return machine;
        };
        for (const auto& steps : graphs_without_filter()) expect_enough(with(steps));
        for (const auto& steps : graphs_with_filter(1, 10)) expect_enough(with(steps));
        if (least == worst) {
          for (const auto& steps : graphs_with_filter(2, 15)) expect_enough(with(steps));
        }
      }
    }
  }
}

TEST_F(CapacitySearch, WithSlotsTrainingAndLag) {
  for (const auto& steps : training_graphs()) {
    for (int lag = 0; lag <= 1; ++lag) {
      expect_enough({.groups = 3,
                     .least = 1,
                     .worst = 2,
                     .micro_batch = 3,
                     .slots = 2,
                     .iterations = 3,
                     .lag = lag,
                     .rollout = true,
                     .steps = steps});
    }
  }
}

// After a first round that kept some, the second can need more than the first did.
TEST_F(CapacitySearch, WithRefillWhoseSecondRoundNeedsMost) {
  const Machine machine{.groups = 3,
                        .least = 2,
                        .worst = 2,
                        .micro_batch = 4,
                        .steps = {{.draws = 3, .oversample_tenths = 16}, {.inputs = {0}, .barrier = true}}};
  expect_exact(machine);
  EXPECT_EQ(checked(machine, 1000).plan->main_path().capacity.tokens_needed, 10);  // 1 kept, then 2 kept, 1 open, and 1 that asks
}

// Why `check` refuses it: no budget is enough.
TEST_F(CapacitySearch, ABarrierInFrontOfRefillStallsWithAnyBudget) {
  for (const bool reads : {false, true}) {
    const Machine machine{.groups = 2,
                          .least = 1,
                          .worst = 2,
                          .micro_batch = 3,
                          .steps = {{.reads = reads, .barrier = true}, {.inputs = {0}, .draws = 2}}};
    EXPECT_FALSE(checked(machine, 1000).plan.has_value());
    const Finding found = search(machine, 1000);
    EXPECT_TRUE(found.stalls);
    EXPECT_TRUE(replay(machine, 1000, found.trace, [](const std::string&) {})) << story(machine, 1000, found);
  }
}

// The machine is able to stall and to say how: what the other tests print when they fail.
TEST_F(CapacitySearch, TellsTheStoryOfAStall) {
  const Machine machine{.groups = 2, .least = 1, .worst = 2, .micro_batch = 2, .steps = {{.barrier = true}}};
  EXPECT_EQ(story(machine, 3, search(machine, 3)),
            "1 iterations of 2 groups of 1 to 2 tokens, micro-batches of 2, lag 0; step 0 <- reads barrier; budget 3\n"
            "  an iteration begins; in flight 0\n"
            "  a group is admitted with 2 tokens; in flight 2\n"
            "  the next group asks for 2 of 3 tokens: nothing can happen\n");
}

// The most that is in flight of all iterations that can be open, with a budget that never binds.
TEST_F(CapacitySearch, NoBudgetIsUsedBeyondTheIterationsThatCanBeOpen) {
  for (const auto& steps : training_graphs()) {
    for (int lag = 0; lag <= 1; ++lag) {
      const Machine machine{
          .groups = 1, .least = 1, .worst = 2, .micro_batch = 3, .iterations = 4, .lag = lag, .rollout = true, .steps = steps};
      const Finding found = search(machine, 1000);
      EXPECT_FALSE(found.stalls);
      EXPECT_EQ(found.paths[0].in_flight, checked(machine, 1000).plan->main_path().capacity.in_flight_tokens)
          << describe(machine);
    }
  }
}

}  // namespace
}  // namespace sluice::engine::testing::capacity_search_test
