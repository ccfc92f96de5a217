#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <utility>

#include "engine/plan/plan.h"
#include "tests/engine/search/capacity_machine.h"
#include "tests/engine/search/machine_pipeline.h"

// Two paths beside each other, of every small family: with the shares of the budget that `check` asks for no run stalls, whatever
// the order of events and the sizes are, and with one token less for either path some run does. And no version of the weights is
// published over one that is sampled from.
namespace sluice::engine::testing::paths_search_test {
namespace {

constexpr int kPlenty = 1000;

class PathsSearch : public ::testing::Test {
 protected:
  void SetUp() override { add_machine_types(registry_); }

  void TearDown() override {
    if (machines_ > 0) std::cout << machines_ << " machines, " << states_ << " states; of " << waits_ << " the publisher waits\n";
  }

  std::optional<Plan> plan_of(const Paths& paths, const std::vector<int>& shares) {
    return check_machine(paths, shares, registry_).plan;
  }

  std::string story(const Paths& paths, const std::vector<int>& shares, const Finding& finding) {
    std::string text = describe(paths) + "\n";
    replay(paths, shares, finding.trace, [&](const std::string& line) { text += "  " + line + "\n"; });
    return text;
  }

  // A path with a share of its own packs less where that is small, and so needs less: the smallest share that is accepted.
  std::vector<int> needed_shares(const Paths& paths) {
    std::vector<int> shares(paths.paths.size(), kPlenty);
    for (size_t p = 0; p < shares.size(); ++p) {
      for (shares[p] = 1; !plan_of(paths, shares); ++shares[p]) {
        if (shares[p] == kPlenty)
          throw std::runtime_error(describe(paths) + "\n" + render(check_machine(paths, shares, registry_).problems));
      }
    }
    return shares;
  }

  void expect_exact(Paths paths) {
    const std::vector<int> shares = needed_shares(paths);
    expect_no_stall(paths, shares);
    const std::vector<PlanPath> plans = plan_of(paths, shares)->paths;
    for (size_t p = 0; p < shares.size(); ++p) {
      EXPECT_EQ(plans[p].capacity.tokens_needed, shares[p]) << describe(paths);
      expect_stall(paths, shares, p);
    }
  }

  Finding expect_no_stall(Paths& paths, const std::vector<int>& shares) {
    const std::optional<Plan> accepted = plan_of(paths, shares);
    if (!accepted) throw std::runtime_error(describe(paths) + "\n" + render(check_machine(paths, shares, registry_).problems));
    const Plan& plan = *accepted;
    paths.readable_versions = readable_versions(plan);
    const Finding found = search(paths, shares);
    EXPECT_FALSE(found.stalls || found.overwrites) << story(paths, shares, found);
    for (size_t p = 0; p < shares.size(); ++p) expect_bounds(paths, p, plan, found.paths[p]);
    ++machines_;
    states_ += found.states;
    waits_ += found.publisher_waited;
    return found;
  }

  // Of the model that is trained.
  static int readable_versions(const Plan& plan) {
    const auto trained = std::ranges::find_if(plan.models, [](const PlanModel& model) { return model.usage.updated; });
    return static_cast<int>(trained->usage.versions.readable);
  }

  void expect_stall(const Paths& paths, std::vector<int> shares, size_t path) {
    if (--shares[path] == 0) return;
    EXPECT_FALSE(plan_of(paths, shares)) << describe(paths);
    const Finding less = search(paths, shares);
    EXPECT_TRUE(less.stalls) << "does not stall with a share of " << shares[path] << ": " << describe(paths);
    EXPECT_TRUE(replay(paths, shares, less.trace, [](const std::string&) {})) << story(paths, shares, less);
    states_ += less.states;
  }

  // The worst cases of the plan.
  void expect_bounds(const Paths& paths, size_t p, const Plan& plan, const Seen& seen) {
    const PlanCapacity& capacity = plan.paths[p].capacity;
    const std::vector<Step>& steps = paths.paths[p].steps;
    EXPECT_EQ(seen.drawn, capacity.drawn_groups) << describe(paths);
    EXPECT_LE(seen.in_flight, capacity.in_flight_tokens) << describe(paths);
    const bool any_reader = std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.reads; });
    EXPECT_EQ(seen.micro_batch, any_reader ? capacity.micro_batch_tokens : 0) << describe(paths);
    for (size_t s = 0; s < steps.size(); ++s)
      EXPECT_LE(seen.held[s], node_of_step(plan, p, s).worst_tokens)
          << "step " << s << " of path " << p << ": " << describe(paths);
  }

  Registry registry_;
  int64_t machines_ = 0;
  int64_t states_ = 0;
  int64_t waits_ = 0;  // machines whose publisher waits for the other path in some state
};

using Steps = std::vector<Step>;

const Step kValues{.use = Use::kReadsLive}, kTrain{.inputs = {0}, .use = Use::kTrains};
const Step kCollectingTrain{.inputs = {0}, .barrier = true, .use = Use::kTrains};
const Step kPublish{.inputs = {1}, .reads = false, .use = Use::kPublishes},
    kReadingPublish{.inputs = {1}, .use = Use::kPublishes};
const Step kReader{}, kBarrier{.barrier = true}, kBarrierBehind{.inputs = {0}, .barrier = true};

// The last two hold tokens while the publisher waits, and after it.
const std::vector<Steps> kTraining{{kValues, kTrain, kPublish},
                                   {kValues, kCollectingTrain, kPublish},
                                   {kValues, kTrain, kReadingPublish},
                                   {kValues, kTrain, kPublish, {.inputs = {2}}}};
const std::vector<Steps> kMeasuring{{kReader}, {kBarrier}, {kReader, kBarrierBehind}};

struct Due {
  int every;
  bool before;
};
const std::vector<Due> kDues{{1, false}, {1, true}, {2, false}, {2, true}, {0, true}};

Machine training(const Steps& steps, int groups, int lag) {
  return {
      .groups = groups, .least = 2, .worst = 2, .micro_batch = 4, .iterations = 3, .lag = lag, .rollout = true, .steps = steps};
}

// Beside `first`, with a share of its own.
Machine beside(const Machine& first, const Steps& steps, int groups) {
  Machine machine = first;
  machine.groups = groups;
  machine.steps = steps;
  machine.own_share = true;
  return machine;
}

Machine measuring(const Machine& first, const Steps& steps, int groups, Due due) {
  Machine machine = beside(first, steps, groups);
  machine.every = due.every;
  machine.before_training = due.before;
  return machine;
}

TEST_F(PathsSearch, TrainingBesideMeasuring) {
  for (const Steps& trained : kTraining) {
    for (const Steps& measured : kMeasuring) {
      for (const Due due : kDues) {
        for (int lag = 0; lag <= 2; ++lag) {
          for (int groups = 1; groups <= 3; ++groups) {
            const Machine train = training(trained, groups, lag);
            expect_exact({.paths = {train, measuring(train, measured, 4 - groups, due)}});
          }
        }
      }
    }
  }
}

// Each path trains a model of its own, and samples from that or from the other's.
TEST_F(PathsSearch, TwoThatTrain) {
  for (const Steps& first : kTraining) {
    for (const Steps& second : kTraining) {
      for (int lag = 0; lag <= 2; ++lag) {
        for (const bool crosswise : {false, true}) {
          Machine one = training(first, 2, lag), other = training(second, 1, lag);
          one.model_of = crosswise ? 1 : 0;
          other.model_of = crosswise ? 0 : 1;
          other.own_share = true;
          expect_exact({.paths = {one, other}});
        }
      }
    }
  }
}

// Groups of any size on both paths, of which one or the other has a share of its own.
TEST_F(PathsSearch, WithSizes) {
  for (const Steps& trained : kTraining) {
    for (const Steps& measured : kMeasuring) {
      for (const int micro_batch : {2, 3, 5}) {
        for (const bool other_owns : {false, true}) {
          Machine train = training(trained, 2, 1);
          train.least = 1;
          train.micro_batch = micro_batch;
          Machine measure = measuring(train, measured, 2, {1, true});
          if (other_owns) std::swap(train.own_share, measure.own_share);
          expect_exact({.paths = {train, measure}});
          expect_exact({.paths = {measure, train}});
        }
      }
    }
  }
}

TEST_F(PathsSearch, ThreeGroupsOfAnySizeOnBothPaths) {
  for (int lag = 0; lag <= 2; ++lag) {
    for (const Steps& trained : {kTraining[0], kTraining[1]}) {
      for (const Steps& measured : {kMeasuring[0], kMeasuring[1]}) {
        Machine train = training(trained, 3, lag);
        train.least = 1;
        train.micro_batch = 3;
        expect_exact({.paths = {train, measuring(train, measured, 3, {1, false})}});
      }
    }
  }
}

TEST_F(PathsSearch, OnDemandOnEither) {
  for (const Steps& trained : kTraining) {
    for (const Steps& measured : kMeasuring) {
      for (const auto& [first, second] : {std::pair{true, false}, {false, true}, {true, true}}) {
        for (int lag = 0; lag <= 1; ++lag) {
          Machine train = training(trained, 2, lag);
          train.least = 1;
          train.micro_batch = 3;
          Machine measure = measuring(train, measured, 2, {2, true});
          train.on_demand = first;
          measure.on_demand = second;
          expect_exact({.paths = {train, measure}});
        }
      }
    }
  }
}

// Both take part in every iteration; one trains what both sample from, or what it alone does.
TEST_F(PathsSearch, TwoThatLead) {
  for (const Steps& trained : kTraining) {
    for (const Steps& other : kMeasuring) {
      for (int lag = 0; lag <= 2; ++lag) {
        for (int groups = 1; groups <= 3; ++groups) {
          const Machine train = training(trained, groups, lag);
          Machine same = beside(train, other, 4 - groups), frozen = same, without_rollout = same;
          frozen.of_frozen_model = true;
          without_rollout.rollout = false;
          for (const Machine& second : {same, frozen, without_rollout}) {
            expect_exact({.paths = {train, second}});
            if (groups == 2) expect_exact({.paths = {second, train}});
          }
        }
      }
    }
  }
}

// A path whose data have ended goes along with the other, without groups.
TEST_F(PathsSearch, WhereDataEnd) {
  for (const Steps& trained : kTraining) {
    for (const Steps& other : kMeasuring) {
      for (int lag = 0; lag <= 2; ++lag) {
        for (const auto& [lasts, other_lasts] : {std::pair{1, 0}, {2, 0}, {0, 1}, {0, 2}, {1, 2}, {2, 1}}) {
          Machine train = training(trained, 2, lag), second = beside(train, other, 2);
          train.lasts = lasts;
          second.lasts = other_lasts;
          expect_exact({.paths = {train, second}});
        }
        Machine train = training(trained, 2, lag);
        train.lasts = 2;
        expect_exact({.paths = {train, measuring(train, other, 2, {1, true})}});
      }
    }
  }
}

// As with preference pairs and answers that are sampled now and then.
TEST_F(PathsSearch, TrainingWithoutRolloutBesideMeasuring) {
  for (const Steps& trained : kTraining) {
    for (const Steps& measured : kMeasuring) {
      for (const Due due : kDues) {
        Machine train = training(trained, 2, 0);
        Machine measure = measuring(train, measured, 2, due);
        train.rollout = false;
        expect_exact({.paths = {train, measure}});
      }
    }
  }
}

TEST_F(PathsSearch, BesideAFilterWithRefill) {
  const Steps filtered{{.draws = 2, .oversample_tenths = 15}, kBarrierBehind};
  for (const Steps& trained : kTraining) {
    Machine train = training(trained, 1, 1);
    train.iterations = 2;
    expect_exact({.paths = {train, beside(train, filtered, 2)}});
    expect_exact({.paths = {train, measuring(train, filtered, 2, {2, true})}});
  }
}

// More than is needed does no harm.
TEST_F(PathsSearch, NoLargerSharesStall) {
  for (const Steps& trained : kTraining) {
    for (const Steps& other : kMeasuring) {
      for (int lag = 0; lag <= 1; ++lag) {
        const Machine train = training(trained, 2, lag);
        for (const Machine& second : {beside(train, other, 2), measuring(train, other, 2, {1, true})}) {
          Paths paths{.paths = {train, second}};
          const std::vector<int> needed = needed_shares(paths);
          for (const auto& [more, more_beside] : {std::pair{1, 0}, {0, 1}, {kPlenty, kPlenty}}) {
            expect_no_stall(paths, {needed[0] + more, needed[1] + more_beside});
          }
        }
      }
    }
  }
}

// A longer run: several iterations lie between those that are measured.
TEST_F(PathsSearch, MeasuredSeldom) {
  for (const int every : {2, 3}) {
    for (int lag = 0; lag <= 2; ++lag) {
      Machine train = training(kTraining[3], 1, lag);
      train.iterations = 6;
      expect_exact({.paths = {train, measuring(train, {kReader}, 2, {every, false})}});
      expect_exact({.paths = {train, measuring(train, {kBarrier}, 2, {every, true})}});
    }
  }
}

// Why the publisher waits: without that, memory of a version would be taken while another path samples from it.
TEST_F(PathsSearch, WithoutThePublishersWaitAVersionInUseIsOverwritten) {
  for (int lag = 0; lag <= 2; ++lag) {
    const Machine train = training(kTraining[0], 1, lag);
    for (const Machine& other : {beside(train, {kReader}, 2), measuring(train, {kReader}, 2, {1, true})}) {
      Paths paths{.paths = {train, other}};
      const std::vector<int> shares = needed_shares(paths);
      EXPECT_TRUE(expect_no_stall(paths, shares).publisher_waited) << describe(paths);
      paths.publisher_waits = false;
      EXPECT_TRUE(search(paths, shares).overwrites) << describe(paths);
    }
  }
}

// The most that is in flight of all iterations that can be open, with shares that never bind: exactly what the plan says.
TEST_F(PathsSearch, NoShareIsUsedBeyondTheIterationsThatCanBeOpen) {
  const std::vector<Due> dues{{0, false}, {1, false}, {1, true}, {2, false}, {2, true},
                              {3, false}, {3, true},  {4, true}, {0, true}};
  for (const Steps& trained : kTraining) {
    for (const Due due : dues) {
      for (int lag = 0; lag <= 2; ++lag) {
        for (const int iterations : {1, 2, 5, 6}) {
          Machine train = training(trained, 1, lag);
          train.least = train.worst = train.micro_batch = 1;
          train.iterations = iterations;
          Paths paths{.paths = {train, measuring(train, {kReader}, 1, due)}};
          const std::vector<int> shares{kPlenty, kPlenty};
          const Finding found = expect_no_stall(paths, shares);
          const Plan plan = *plan_of(paths, shares);
          for (size_t p = 0; p < shares.size(); ++p)
            EXPECT_EQ(found.paths[p].in_flight, plan.paths[p].capacity.in_flight_tokens)
                << "path " << p << ": " << describe(paths);
        }
      }
    }
  }
}

// What the other tests print when they fail.
TEST_F(PathsSearch, TellsTheStoryOfAStall) {
  const Machine train = training(kTraining[1], 1, 0);
  const Paths paths{.paths = {train, measuring(train, {kBarrier}, 2, {1, false})}, .readable_versions = 2};
  const std::string text = story(paths, {2, 3}, search(paths, {2, 3}));
  EXPECT_EQ(text.substr(text.find("  path 1: ")),
            "  path 1: an iteration begins; in flight 0\n"
            "  path 1: a group is admitted with 2 tokens; in flight 2\n"
            "  path 1: group 0 of those admitted is finished with 2 tokens; in flight 2\n"
            "  path 0: iteration 2 waits for others, path 1: the next group asks for 2 of 3 tokens: nothing can happen\n");
}

}  // namespace
}  // namespace sluice::engine::testing::paths_search_test
