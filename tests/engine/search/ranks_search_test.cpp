#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "engine/check/check.h"
#include "engine/plan/plan.h"
#include "tests/engine/search/capacity_machine.h"
#include "tests/engine/search/machine_pipeline.h"

// Small machines on two or three ranks, each with a budget of its own, that wait for each other at barriers, where gradients are
// added, and for the verdicts of a refilling filter, and that make groups for each other. Whatever the order of events is: with
// the budget that `check` asks for of each rank no run stalls, and with one token less some run does.
namespace sluice::engine::testing::ranks_search_test {
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

  static Paths on_ranks(const Machine& machine, int ranks) {
    return {.paths = {machine}, .ranks = ranks, .readable_versions = machine.lag + 1};
  }

  int needed(const Machine& machine, int ranks) {
    return static_cast<int>(checked(on_ranks(machine, ranks), 1000000).main_path().capacity.tokens_needed);
  }

  // With what is needed and `spare` tokens.
  Finding expect_no_stall(const Machine& machine, int ranks = kRanks, int spare = 0) {
    const Paths paths = on_ranks(machine, ranks);
    const int budget = needed(machine, ranks) + spare;
    const PlanCapacity capacity = checked(paths, budget).main_path().capacity;
    Finding enough = search(paths, {budget});
    EXPECT_FALSE(enough.stalls) << story(paths, budget, enough);
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
    return enough;
  }

  // Where a rank has one slot.
  Finding expect_exact(const Machine& machine, int ranks = kRanks) {
    Finding enough = expect_no_stall(machine, ranks);
    const Paths paths = on_ranks(machine, ranks);
    const int short_by_one = needed(machine, ranks) - 1;
    EXPECT_FALSE(check_machine(paths, {short_by_one}, registry_).plan) << describe(paths);
    const Finding less = search(paths, {short_by_one});
    EXPECT_TRUE(less.stalls) << "does not stall: " << describe(paths) << "; budget " << short_by_one;
    const std::string told = story(paths, short_by_one, less);
    EXPECT_TRUE(replay(paths, {short_by_one}, less.trace, [](const std::string&) {})) << told;
    // What is made ends, so it is what comes after that has no room.
    const bool shares_making = machine.rollout && !machine.on_demand && short_by_one >= machine.worst;
    if (shares_making) {
      EXPECT_NE(told.find("is not taken over"), std::string::npos) << told;
    }
    count(less);
    return enough;
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

// Slots of one rank, some of whose groups the other makes.
TEST_F(RanksSearch, RanksWithSeveralSlotsHelp) {
  const Machine machine{.groups = 5,
                        .least = 1,
                        .worst = 2,
                        .micro_batch = 4,
                        .slots = 2 * kRanks,
                        .rollout = true,
                        .steps = {{}, kTrain, kPublish}};
  EXPECT_TRUE(expect_no_stall(machine).rank_helped);
}

// One rank has a group, the other has two and room to make one. With lag the first goes on while what it made waits.
TEST_F(RanksSearch, OneMakesForTheOther) {
  for (int lag = 0; lag <= 1; ++lag) {
    const Machine machine{.groups = 3,
                          .least = 1,
                          .worst = 2,
                          .micro_batch = 3,
                          .slots = kRanks,
                          .iterations = lag + 2,
                          .lag = lag,
                          .rollout = true,
                          .steps = {{.use = Use::kReadsLive}, kTrain, kPublish}};
    const Finding found = expect_exact(machine);
    EXPECT_TRUE(found.rank_helped) << describe(machine);
    EXPECT_EQ(found.helper_went_on, lag > 0) << describe(machine);
    for (int spare = 1; spare <= 3; ++spare) expect_no_stall(machine, kRanks, spare);
  }
}

// More is drawn in a round than there is credit for.
TEST_F(RanksSearch, HelpInARound) {
  const Machine machine{.groups = 5,
                        .least = 2,
                        .worst = 2,
                        .micro_batch = 2,
                        .slots = kRanks,
                        .rollout = true,
                        .steps = {kRefill, kBarrierTrains, kPublish}};
  EXPECT_TRUE(expect_exact(machine).rank_helped);
}

// Where the credit is enough for all groups of an iteration nobody has to help: the ranks do it all the same, and each other at
// once.
TEST_F(RanksSearch, HelpThatIsNotNeeded) {
  for (const Step& first : {Step{.use = Use::kReadsLive}, kFilter, kRefill}) {
    for (const Step& trainer : {kTrain, kBarrierTrains}) {
      for (int lag = 0; lag <= 1; ++lag) {
        for (int groups = 3; groups <= 5; ++groups) {
          if (groups > 3 && (lag > 0 || first.draws > 1)) continue;  // too many states
          const Machine machine{.groups = groups,
                                .least = 1,
                                .worst = 2,
                                .micro_batch = first.draws > 0 ? 2 : 3,
                                .slots = kRanks,
                                .iterations = first.draws > 1 ? 1 : 2 + lag,
                                .lag = lag,
                                .rollout = true,
                                .steps = {first, trainer, kPublish},
                                .help = Help::kAnytime};
          const Finding found = expect_exact(machine);
          EXPECT_TRUE(found.rank_helped) << describe(machine);
          EXPECT_EQ(found.helper_went_on, lag > 0 && machine.iterations > 1) << describe(machine);
          expect_no_stall(machine, kRanks, 1);
        }
      }
    }
  }
}

// What the proof uses: who helps has come to the round. Else it lacks the credit on its way there, and the owner waits for it.
TEST_F(RanksSearch, HelpFromBehindStalls) {
  const Machine machine{.groups = 3,
                        .least = 1,
                        .worst = 2,
                        .micro_batch = 3,
                        .slots = kRanks,
                        .iterations = 3,
                        .lag = 1,
                        .rollout = true,
                        .steps = {{.use = Use::kReadsLive}, kTrain, kPublish},
                        .help = Help::kFromBehind};
  const Paths paths = on_ranks(machine, kRanks);
  const int budget = needed(machine, kRanks);
  const Finding found = search(paths, {budget});
  ASSERT_TRUE(found.stalls) << describe(paths);
  EXPECT_TRUE(replay(paths, {budget}, found.trace, [](const std::string&) {})) << story(paths, budget, found);
  count(found);
}

// Two ranks have a group, and make those of the third.
TEST_F(RanksSearch, ThreeRanks) {
  for (const Help help : {Help::kWhereShort, Help::kAnytime}) {
    for (const Step& trainer : {kTrain, kBarrierTrains}) {
      for (int lag = 0; lag <= (help == Help::kAnytime ? 0 : 1); ++lag) {
        const Machine machine{.groups = 4,
                              .least = 2,
                              .worst = 2,
                              .micro_batch = 3,
                              .slots = 3,
                              .iterations = 1 + lag,
                              .lag = lag,
                              .rollout = true,
                              .steps = {{.use = Use::kReadsLive}, trainer, kPublish},
                              .help = help};
        EXPECT_EQ(expect_exact(machine, 3).rank_helped, help == Help::kAnytime || !trainer.barrier) << describe(machine);
      }
    }
  }
}

// Each has making credit of its own, and they wait for each other.
TEST_F(RanksSearch, PathsThatHelp) {
  Machine beside{
      .groups = 3, .least = 1, .worst = 1, .micro_batch = 2, .slots = kRanks, .rollout = true, .steps = {{}}, .own_share = true};
  for (int lag = 0; lag <= 1; ++lag) {
    const Machine machine{.groups = 3,
                          .least = 2,
                          .worst = 2,
                          .micro_batch = 2,
                          .slots = kRanks,
                          .iterations = 1 + lag,
                          .lag = lag,
                          .rollout = true,
                          .steps = {{}, kTrain, kPublish}};
    beside.iterations = 1 + lag, beside.lag = lag;
    beside.every = lag;  // with lag it only measures, so that there are not too many states
    const Paths paths{.paths = {machine, beside}, .ranks = kRanks, .readable_versions = lag + 2};
    const std::vector<int> shares{2, 1};
    ASSERT_TRUE(check_machine(paths, shares, registry_).plan);
    const Finding found = search(paths, shares);
    EXPECT_FALSE(found.stalls || found.overwrites) << describe(paths);
    EXPECT_TRUE(found.rank_helped) << describe(paths);
    count(found);
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
}  // namespace sluice::engine::testing::ranks_search_test
