#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "engine/check/check.h"
#include "tests/engine/ranks/ranks_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"
#include "tests/sanitized.h"

// Ranks that train and ranks that sample for them: several worlds in one process, connected by mail, parcels and versions that
// come in any order.
namespace sluice::engine::roles_test {
namespace {

using testing::RankOutcome;
using testing::Rows;

// 400 pipelines in all; fewer where a sanitizer makes each many times slower.
constexpr uint64_t kPipelinesATest = tests::kSanitized ? 10 : 100;

class Roles : public ::testing::Test {
 protected:
  Roles() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  struct Alone {
    Rows rows;
    std::chrono::microseconds took;
  };

  // On one rank.
  Alone run_alone(const toy::RanksShape& shape, uint64_t seed) const {
    const CheckResult alone = check(toy::ranks_pipeline(shape, seed), registry_, 1);
    if (!alone.plan) throw std::runtime_error(render(alone.problems));
    const auto begin = std::chrono::steady_clock::now();
    Rows rows = testing::run_rank(*alone.plan).rows;
    return {std::move(rows), std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin)};
  }

  // One or two ranks that train, two or three that sample and may be lost, and the least budgets.
  CheckResult check_elastic(toy::RanksShape& shape, uint64_t seed) const {
    shape.training_ranks = 1 + static_cast<int>(seed % 2);
    shape.sampling_ranks = 2 + static_cast<int>(seed / 2 % 2);
    shape.is_elastic = true;
    shape.on_demand = seed / 4 % 2 == 1;
    shape.budget = toy::least_budget(shape, seed, registry_, 0);
    shape.sampling_budget = shape.samples * shape.worst * ((shape.on_demand ? 1 : 2) + static_cast<int64_t>(seed % 3));
    return check(toy::ranks_pipeline(shape, seed), registry_);
  }

  Registry registry_;
};

class RolesOfSeeds : public Roles, public ::testing::WithParamInterface<uint64_t> {};

// With the least budgets, whoever makes the groups and however long the weights take: the lines are those of one process, bit for
// bit.
TEST_P(RolesOfSeeds, GiveTheMetricsOfOneProcess) {
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    const Rows expected = run_alone(shape, seed).rows;
    shape.training_ranks = 1 + static_cast<int>(seed % 3);
    shape.sampling_ranks = 1 + static_cast<int>(seed / 3 % 3);
    shape.on_demand = seed / 9 % 2 == 1;
    shape.budget = toy::least_budget(shape, seed, registry_, 0);
    shape.sampling_budget = shape.samples * shape.worst * (1 + static_cast<int64_t>(seed % 2));
    const CheckResult apart = check(toy::ranks_pipeline(shape, seed), registry_);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    ASSERT_EQ(apart.plan->ranks, shape.training_ranks + shape.sampling_ranks);
    const std::vector<RankOutcome> outcomes = testing::run_ranks(*apart.plan, seed, shape.pause_us);
    for (int rank = 0; rank < shape.training_ranks; ++rank) ASSERT_EQ(outcomes[static_cast<size_t>(rank)].rows, expected);
  }
}

// Ranks that sample are lost at any time, all but one: the lines stay what they are, bit for bit.
TEST_P(RolesOfSeeds, GiveTheSameWhereRanksThatSampleAreLost) {
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    const auto [expected, took] = run_alone(shape, seed);
    const CheckResult apart = check_elastic(shape, seed);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    RandomStream random(seed, 5);
    const auto within = static_cast<uint64_t>(std::max<int64_t>(10 * shape.pause_us, 4 * took.count()) + 1);
    std::vector<testing::LostRank> lost;
    for (int rank = shape.training_ranks + 1; rank < apart.plan->ranks; ++rank)
      lost.push_back({.rank = rank, .after_us = static_cast<int64_t>(random.below(within))});
    const std::vector<RankOutcome> outcomes = testing::run_ranks(*apart.plan, seed, shape.pause_us, lost);
    for (int rank = 0; rank < shape.training_ranks; ++rank) ASSERT_EQ(outcomes[static_cast<size_t>(rank)].rows, expected);
  }
}

// More ranks train than one that samples asks for unless it may have to do without the others.
TEST_F(Roles, GoOnWithOneRankThatSamplesForManyThatTrain) {
  constexpr uint64_t kSeed = 1;
  toy::RanksShape shape{.slots = 20, .groups = 20, .iterations = 4};
  const Rows expected = run_alone(shape, kSeed).rows;
  shape.training_ranks = 20;
  shape.sampling_ranks = 2;
  shape.is_elastic = true;
  const CheckResult apart = check(toy::ranks_pipeline(shape, kSeed), registry_);
  ASSERT_TRUE(apart.plan) << render(apart.problems);
  const std::vector<RankOutcome> outcomes = testing::run_ranks(*apart.plan, kSeed, shape.pause_us, {{.rank = 21, .after_us = 0}});
  for (int rank = 0; rank < shape.training_ranks; ++rank) ASSERT_EQ(outcomes[static_cast<size_t>(rank)].rows, expected);
}

// All that sample are lost, each at some time within twice that of one process.
std::vector<RankOutcome> run_and_lose_all(const Plan& plan, const toy::RanksShape& shape, std::chrono::microseconds took,
                                          uint64_t seed) {
  RandomStream random(seed, 7);
  std::vector<testing::LostRank> lost;
  for (int rank = shape.training_ranks; rank < plan.ranks; ++rank)
    lost.push_back({.rank = rank, .after_us = static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * took.count() + 1)))});
  return testing::run_ranks(plan, seed, shape.pause_us, lost);
}

// All are lost, one after the other: those that train end after the same iteration, and what they have trained up to there is
// right. Further pipelines are tried until one is cut short: some end before their last sampler is lost.
TEST_P(RolesOfSeeds, EndTogetherWhereNobodyIsLeftThatSamples) {
  int cut_short = 0;
  constexpr uint64_t kSome = (kPipelinesATest + 3) / 4, kFurther = 50;
  const uint64_t end = (GetParam() + 1) * kSome;
  for (uint64_t seed = GetParam() * kSome; seed < end || (cut_short == 0 && seed < end + kFurther); ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    if (shape.measures) continue;  // see below
    const auto [expected, took] = run_alone(shape, seed);
    const CheckResult apart = check_elastic(shape, seed);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    const std::vector<RankOutcome> outcomes = run_and_lose_all(*apart.plan, shape, took, seed);
    const RankOutcome& first = outcomes.front();
    cut_short += first.was_cut_short ? 1 : 0;
    ASSERT_LE(first.rows.size(), expected.size());
    if (!first.was_cut_short) {
      ASSERT_EQ(first.rows.size(), expected.size());
    }
    ASSERT_TRUE(std::equal(first.rows.begin(), first.rows.end(), expected.begin()));
    for (int rank = 1; rank < shape.training_ranks; ++rank) ASSERT_EQ(outcomes[static_cast<size_t>(rank)].rows, first.rows);
  }
  EXPECT_GT(cut_short, 0);
}

// Of what is trained already a measurement may be left, which nobody makes: the run fails at once, and does not wait for a stall.
TEST_P(RolesOfSeeds, FailAtOnceWhereNobodyIsLeftThatMeasures) {
  int failed = 0;
  constexpr uint64_t kSome = (kPipelinesATest + 3) / 4, kFurther = 150;
  const uint64_t end = (GetParam() + 1) * kSome;
  for (uint64_t seed = GetParam() * kSome; seed < end || (failed == 0 && seed < end + kFurther); ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    if (!shape.measures) continue;
    const auto [expected, took] = run_alone(shape, seed);
    const CheckResult apart = check_elastic(shape, seed);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    const std::vector<RankOutcome> outcomes = run_and_lose_all(*apart.plan, shape, took, seed);
    for (int rank = 0; rank < shape.training_ranks; ++rank) {
      const RankOutcome& outcome = outcomes[static_cast<size_t>(rank)];
      failed += outcome.lacked_samplers ? 1 : 0;
      ASSERT_LE(outcome.rows.size(), expected.size());
      ASSERT_TRUE(std::equal(outcome.rows.begin(), outcome.rows.end(), expected.begin()));
    }
  }
  EXPECT_GT(failed, 0);
}

// Ranks that sample are lost and come back, all but one, at any time: while the run is long enough for them to be let in again,
// or not. It was told that the run ends before, and then that it is let in.
TEST_P(RolesOfSeeds, GiveTheSameWhereRanksComeBack) {
  int came_in = 0;
  constexpr int64_t kLateUs = 400;
  constexpr uint64_t kLongOnes = (kPipelinesATest + 3) / 4;
  for (uint64_t seed = GetParam() * kLongOnes; seed < (GetParam() + 1) * kLongOnes; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    shape.iterations += 12 + shape.lag;
    const auto [expected, took] = run_alone(shape, seed);
    const CheckResult apart = check_elastic(shape, seed);
    ASSERT_TRUE(apart.plan) << render(apart.problems);
    RandomStream random(seed, 6);
    std::vector<testing::LostRank> lost;
    const uint64_t within = seed % 2 == 0 ? 2000 : static_cast<uint64_t>(8 * took.count() + 1);
    for (int rank = shape.training_ranks + 1; rank < apart.plan->ranks; ++rank)
      lost.push_back({.rank = rank,
                      .after_us = static_cast<int64_t>(random.below(3000)),
                      .back_after_us = static_cast<int64_t>(random.below(within))});
    const std::vector<RankOutcome> outcomes = testing::run_ranks(*apart.plan, seed, kLateUs, lost);
    for (int rank = 0; rank < shape.training_ranks; ++rank) ASSERT_EQ(outcomes[static_cast<size_t>(rank)].rows, expected);
    came_in += static_cast<int>(std::ranges::count_if(outcomes, &RankOutcome::came_in));
  }
  EXPECT_GT(came_in, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RolesOfSeeds, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace sluice::engine::roles_test
