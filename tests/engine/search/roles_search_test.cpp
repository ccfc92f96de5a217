#include <gtest/gtest.h>

#include <iostream>
#include <string>

#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "tests/engine/search/capacity_machine.h"
#include "tests/engine/search/machine_pipeline.h"

// Small machines with roles: ranks that have all of their groups made by others, and ranks that make groups for these alone.
// Whatever the order of events is: with the budgets that `check` asks for no run stalls, and with one token less of either some
// run does.
namespace sluice::engine::testing::roles_search_test {
namespace {

class RolesSearch : public ::testing::Test {
 protected:
  void SetUp() override { add_machine_types(registry_); }
  void TearDown() override { std::cout << machines_ << " machines, " << states_ << " states\n"; }

  static Paths on_ranks(const Machine& machine, int samplers) {
    return {.paths = {machine}, .ranks = machine.owners + samplers, .readable_versions = machine.lag + 1};
  }

  Finding found(const Paths& paths, int budget) {
    Finding finding = search(paths, {budget});
    ++machines_;
    states_ += finding.states;
    return finding;
  }

  std::string story(const Paths& paths, int budget, const Finding& finding) {
    std::string text = describe(paths) + "; budget " + std::to_string(budget) + "\n";
    replay(paths, {budget}, finding.trace, [&](const std::string& line) { text += "  " + line + "\n"; });
    return text;
  }

  // Of the ranks that train. Those that sample need room for one group.
  int needed(const Paths& paths) {
    const CheckResult result = check_machine(paths, {1000000}, registry_);
    if (!result.plan) throw std::runtime_error(describe(paths) + "\n" + render(result.problems));
    return static_cast<int>(result.plan->main_path().capacity.tokens_needed);
  }

  void expect_exact(Machine machine, int samplers) {
    machine.making = machine.worst;
    const Paths enough = on_ranks(machine, samplers);
    const int budget = needed(enough);
    const Finding none = found(enough, budget);
    EXPECT_FALSE(none.stalls || none.overwrites) << story(enough, budget, none);
    EXPECT_TRUE(none.rank_helped && none.rank_waited) << describe(enough);

    EXPECT_FALSE(check_machine(enough, {budget - 1}, registry_).plan) << describe(enough);
    const Finding less = found(enough, budget - 1);
    EXPECT_TRUE(less.stalls) << "does not stall: " << describe(enough) << "; budget " << budget - 1;
    EXPECT_TRUE(replay(enough, {budget - 1}, less.trace, [](const std::string&) {})) << story(enough, budget - 1, less);

    machine.making -= 1;
    const Paths without = on_ranks(machine, samplers);
    EXPECT_FALSE(check_machine(without, {budget}, registry_).plan) << describe(without);
    EXPECT_TRUE(found(without, budget).stalls) << "does not stall: " << describe(without);
  }

  // Of two ranks that sample one is lost, at any time.
  void expect_survives_losses(Machine machine) {
    const Paths paths = on_ranks(machine, 2);
    const int budget = needed(paths);
    const Finding finding = found(paths, budget);
    EXPECT_FALSE(finding.stalls || finding.overwrites) << story(paths, budget, finding);
    EXPECT_TRUE(finding.made_again) << describe(paths);
    EXPECT_TRUE(found(paths, budget - 1).stalls) << "does not stall: " << describe(paths);
    machine.making -= 1;
    EXPECT_FALSE(check_machine(on_ranks(machine, 2), {budget}, registry_).plan) << describe(machine);
  }

  Registry registry_;
  int64_t machines_ = 0;
  int64_t states_ = 0;
};

const Step kRead{.use = Use::kReadsLive}, kFilter{.draws = 1}, kRefill{.draws = 2, .oversample_tenths = 15};
const Step kTrain{.inputs = {0}, .use = Use::kTrains}, kBarrierTrains{.inputs = {0}, .barrier = true, .use = Use::kTrains};
const Step kPublish{.inputs = {1}, .reads = false, .use = Use::kPublishes};

// Three ranks of two roles, both ways, and four groups.
TEST_F(RolesSearch, ThreeRanksOfTwoRoles) {
  for (const Step& first : {kRead, kFilter}) {
    for (const Step& trainer : {kTrain, kBarrierTrains}) {
      for (int owners = 1; owners <= 2; ++owners) {
        for (int lag = 0; lag <= 1; ++lag) {
          if (lag > 0 && owners > 1 && first.draws > 0) continue;  // too many states
          expect_exact({.groups = 4,
                        .least = 1,
                        .worst = 2,
                        .micro_batch = 3,
                        .slots = 2,
                        .owners = owners,
                        .iterations = lag + 1 + (owners > 1),
                        .lag = lag,
                        .rollout = true,
                        .steps = {first, trainer, kPublish}},
                       3 - owners);
        }
      }
    }
  }
}

// The rounds of a filter that has groups replaced.
TEST_F(RolesSearch, ReplacedGroups) {
  for (int owners = 1; owners <= 2; ++owners) {
    expect_exact({.groups = 4,
                  .least = 2,
                  .worst = 2,
                  .micro_batch = 2,
                  .slots = 2,
                  .owners = owners,
                  .iterations = 1,
                  .rollout = true,
                  .steps = {kRefill, kBarrierTrains, kPublish}},
                 3 - owners);
  }
}

// Whenever it is lost, and whatever it has made or begun by then.
TEST_F(RolesSearch, RanksThatSampleMayBeLost) {
  for (const Step& first : {kRead, kFilter}) {
    for (const Step& trainer : {kTrain, kBarrierTrains}) {
      for (int lag = 0; lag <= 1; ++lag) {
        const Machine machine{.groups = 3,
                              .least = 1,
                              .worst = 2,
                              .micro_batch = 3,
                              .owners = 1,
                              .making = 4,
                              .elastic = true,
                              .iterations = lag + 1,
                              .lag = lag,
                              .rollout = true,
                              .steps = {first, trainer, kPublish}};
        expect_survives_losses(machine);
      }
    }
  }
}

// Credit that is taken as groups grow. What is finished gives its own up for what is not.
TEST_F(RolesSearch, OnDemand) {
  for (const Step& trainer : {kTrain, kBarrierTrains}) {
    for (int owners = 1; owners <= 2; ++owners) {
      for (int lag = 0; lag <= (trainer.barrier ? 0 : 1); ++lag) {
        expect_exact({.groups = 4 - lag,
                      .least = 1,
                      .worst = 2,
                      .micro_batch = 3,
                      .slots = owners,
                      .owners = owners,
                      .iterations = 1 + lag,
                      .lag = lag,
                      .rollout = true,
                      .on_demand = true,
                      .steps = {kRead, trainer, kPublish}},
                     3 - owners);
      }
    }
  }
}

TEST_F(RolesSearch, OnDemandRanksThatSampleMayBeLost) {
  for (int lag = 0; lag <= 1; ++lag) {
    const Machine machine{.groups = 3,
                          .least = 1,
                          .worst = 2,
                          .micro_batch = 3,
                          .owners = 1,
                          .making = 2,
                          .elastic = true,
                          .keeps_room = false,
                          .iterations = lag + 1,
                          .lag = lag,
                          .rollout = true,
                          .on_demand = true,
                          .steps = {kRead, kTrain, kPublish}};
    expect_survives_losses(machine);
  }
}

// Each of two ranks that sample has finished what its owner does not take yet, and has no room for what that owner waits for.
TEST_F(RolesSearch, FinishedGroupsThatKeepTheirCreditStallTheRun) {
  for (const bool gives_up : {true, false}) {
    const Machine machine{.groups = 4,
                          .least = 1,
                          .worst = 2,
                          .micro_batch = 2,
                          .slots = 2,
                          .owners = 2,
                          .making = 3,
                          .gives_up = gives_up,
                          .iterations = 1,
                          .rollout = true,
                          .on_demand = true,
                          .steps = {kRead, kTrain, kPublish}};
    const Paths paths = on_ranks(machine, 2);
    const Finding finding = found(paths, 100);
    EXPECT_EQ(finding.stalls, !gives_up) << story(paths, 100, finding);
    if (!gives_up) {
      EXPECT_TRUE(replay(paths, {100}, finding.trace, [](const std::string&) {}));
    }
  }
}

// A later group waits for the one that the lost rank was to make, and holds the credit that this one would take.
TEST_F(RolesSearch, WithoutTheRoomThatIsKeptALossStallsTheRun) {
  Machine machine{.groups = 2,
                  .least = 1,
                  .worst = 2,
                  .micro_batch = 2,
                  .owners = 1,
                  .making = 2,
                  .elastic = true,
                  .keeps_room = false,
                  .iterations = 1,
                  .rollout = true,
                  .steps = {kRead, kTrain, kPublish}};
  const Paths paths = on_ranks(machine, 2);
  const Finding finding = found(paths, 100);
  EXPECT_TRUE(finding.stalls) << describe(paths);
  EXPECT_TRUE(replay(paths, {100}, finding.trace, [](const std::string&) {})) << story(paths, 100, finding);
}

// Credit for several groups at a time, of which some wait until their owner has taken older ones over.
TEST_F(RolesSearch, CreditForMoreGroups) {
  for (int lag = 0; lag <= 1; ++lag) {
    for (int making = 2; making <= 5; ++making) {
      const Machine machine{.groups = 4,
                            .least = 1,
                            .worst = 2,
                            .micro_batch = 3,
                            .slots = 2,
                            .owners = 2,
                            .making = making,
                            .iterations = lag + 2,
                            .lag = lag,
                            .rollout = true,
                            .steps = {kRead, kTrain, kPublish}};
      const Paths paths = on_ranks(machine, 1);
      const int budget = needed(paths);
      const Finding finding = found(paths, budget);
      EXPECT_FALSE(finding.stalls || finding.overwrites) << story(paths, budget, finding);
    }
  }
}

}  // namespace
}  // namespace sluice::engine::testing::roles_search_test
