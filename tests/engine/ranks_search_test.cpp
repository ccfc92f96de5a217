#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "engine/plan/plan.h"
#include "tests/engine/capacity_machine.h"
#include "tests/engine/machine_pipeline.h"

// Small machines on two ranks, each with a budget of its own, that wait for each other at barriers, where gradients are added, and
// for the verdicts of a refilling filter. Whatever the order of events is: with the budget that `check` asks for of each rank no
// run stalls, and with one token less some run does.
namespace sluice::engine::testing {
namespace {

constexpr int kRanks = 2;

class RanksSearch : public ::testing::Test {
 protected:
  void SetUp() override { add_machine_types(registry_); }

  void TearDown() override {
    std::cout << machines_ << " machines, " << states_ << " states\n";
    EXPECT_TRUE(rank_waited_) << "the ranks of these machines never wait for each other";
  }

  Plan checked(const Paths& paths, int budget) {
    CheckResult result = check_machine(paths, {budget}, registry_);
    if (!result.plan) throw std::runtime_error(describe(paths) + "\n" + render(result.problems));
    return std::move(*result.plan);
  }

  std::string story(const Paths& paths, int budget, const Finding& finding) {
    std::string text = describe(paths) + "; budget " + std::to_string(budget) + "\n";
    replay(paths, {budget}, finding.trace, [&](const std::string& line) { text += "  " + line + "\n"; });
    return text;
  }

  void expect_no_stall(const Machine& machine) {
    const Paths paths{.paths = {machine}, .ranks = kRanks, .readable_versions = machine.lag + 1};
    const auto needed = static_cast<int>(checked(paths, 1000000).main_path().capacity.tokens_needed);
    const PlanCapacity capacity = checked(paths, needed).main_path().capacity;
    const Finding enough = search(paths, {needed});
    ASSERT_FALSE(enough.stalls) << story(paths, needed, enough);
    int drawn = 0, in_flight = 0, micro_batch = 0;
    for (const Seen& rank : enough.paths) {
      drawn = std::max(drawn, rank.drawn);
      in_flight = std::max(in_flight, rank.in_flight);
      micro_batch = std::max(micro_batch, rank.micro_batch);
    }
    EXPECT_EQ(drawn, capacity.drawn_groups) << describe(paths);
    EXPECT_LE(in_flight, capacity.in_flight_tokens) << describe(paths);
    EXPECT_LE(micro_batch, capacity.micro_batch_tokens) << describe(paths);
    count(enough);
  }

  // Where a rank has one slot.
  void expect_exact(const Machine& machine) {
    expect_no_stall(machine);
    const Paths paths{.paths = {machine}, .ranks = kRanks, .readable_versions = machine.lag + 1};
    const auto needed = static_cast<int>(checked(paths, 1000000).main_path().capacity.tokens_needed);
    EXPECT_FALSE(check_machine(paths, {needed - 1}, registry_).plan) << describe(paths);
    const Finding less = search(paths, {needed - 1});
    ASSERT_TRUE(less.stalls) << "does not stall: " << describe(paths) << "; budget " << needed - 1;
    ASSERT_TRUE(replay(paths, {needed - 1}, less.trace, [](const std::string&) {})) << story(paths, needed - 1, less);
    count(less);
  }

  void count(const Finding& finding) {
    ++machines_;
    states_ += finding.states;
    rank_waited_ = rank_waited_ || finding.rank_waited;
  }

  Registry registry_;
  int64_t machines_ = 0;
  int64_t states_ = 0;
  bool rank_waited_ = false;
};

const Step kFilter{.draws = 1}, kRefill{.draws = 2, .oversample_tenths = 15};
const Step kBarrier{.inputs = {0}, .barrier = true}, kTrain{.inputs = {0}, .use = Use::kTrains};
const Step kBarrierTrains{.inputs = {0}, .barrier = true, .use = Use::kTrains};
const Step kPublish{.inputs = {1}, .reads = false, .use = Use::kPublishes};

// One rank has one group of three, the other has two; or both have as many.
TEST_F(RanksSearch, BarrierBehindAFilter) {
  for (const Step& filter : {kFilter, kRefill}) {
    for (const auto& [least, worst] : {std::pair{1, 2}, {2, 3}}) {
      for (int groups = 3; groups <= 4; ++groups) {
        for (int micro_batch = worst; micro_batch <= 2 * worst; micro_batch += worst) {
          expect_exact({.groups = groups,
                        .least = least,
                        .worst = worst,
                        .micro_batch = micro_batch,
                        .slots = kRanks,
                        .iterations = filter.draws > 1 && groups > 3 ? 1 : 2,  // else too many states
                        .steps = {filter, kBarrier}});
        }
      }
    }
  }
}

TEST_F(RanksSearch, ThreeGroupsEach) {
  const Machine machine{.groups = 6, .least = 2, .worst = 2, .micro_batch = 4, .slots = kRanks, .rollout = true};
  for (int lag = 0; lag <= 1; ++lag) {
    Machine filtering = machine;
    filtering.iterations = 2, filtering.lag = lag, filtering.steps = {kFilter, kBarrierTrains, kPublish};
    expect_exact(filtering);
  }
  Machine refilling = machine;
  refilling.steps = {kRefill, kBarrierTrains, kPublish};
  expect_exact(refilling);
}

TEST_F(RanksSearch, TrainingWithLag) {
  for (const Step& trainer : {kTrain, kBarrierTrains}) {
    for (int lag = 0; lag <= 1; ++lag) {
      for (int groups = 2; groups <= 3; ++groups) {
        expect_exact({.groups = groups,
                      .least = 1,
                      .worst = 2,
                      .micro_batch = 3,
                      .slots = kRanks,
                      .iterations = lag + 2,
                      .lag = lag,
                      .rollout = true,
                      .steps = {{.use = Use::kReadsLive}, trainer, kPublish}});
      }
    }
  }
}

TEST_F(RanksSearch, TrainingBehindAFilterWithLag) {
  for (const Step& filter : {kFilter, kRefill}) {
    for (int lag = 0; lag <= 1; ++lag) {
      expect_exact({.groups = 3,
                    .least = 2,
                    .worst = 2,
                    .micro_batch = 2,
                    .slots = kRanks,
                    .iterations = 2,
                    .lag = lag,
                    .rollout = true,
                    .steps = {filter, kBarrierTrains, kPublish}});
    }
  }
}

TEST_F(RanksSearch, OnDemand) {
  for (int groups = 2; groups <= 3; ++groups) {
    expect_exact({.groups = groups,
                  .least = 1,
                  .worst = 2,
                  .micro_batch = 3,
                  .slots = kRanks,
                  .iterations = 2,
                  .lag = 1,
                  .rollout = true,
                  .on_demand = true,
                  .steps = {{.use = Use::kReadsLive}, kBarrierTrains, kPublish}});
  }
}

// Micro-batches are cut between the slots of a rank too.
TEST_F(RanksSearch, RanksWithSeveralSlots) {
  for (const Step& filter : {kFilter, kRefill}) {
    expect_no_stall({.groups = 5, .least = 1, .worst = 2, .micro_batch = 4, .slots = 2 * kRanks, .steps = {filter, kBarrier}});
  }
}

// What the proof uses: the rank that has most needs most.
TEST(RanksSearchProof, FewerGroupsNeedNoMore) {
  for (const Step& filter :
       {kFilter, kRefill, Step{.draws = 3, .oversample_tenths = 16}, Step{.draws = 3, .oversample_tenths = 25}}) {
    Registry registry;
    add_machine_types(registry);
    for (int worst = 1; worst <= 4; ++worst) {
      for (int micro_batch = worst; micro_batch <= 5 * worst; ++micro_batch) {
        int64_t before = 0;
        for (int groups = 1; groups <= 12; ++groups) {
          const Machine machine{.groups = groups,
                                .least = (worst + 1) / 2,
                                .worst = worst,
                                .micro_batch = micro_batch,
                                .steps = {filter, kBarrier}};
          const CheckResult result = check_machine({.paths = {machine}}, {1000000}, registry);
          ASSERT_TRUE(result.plan);
          const int64_t needed = result.plan->main_path().capacity.tokens_needed;
          EXPECT_GE(needed, before) << describe(machine);
          before = needed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice::engine::testing
