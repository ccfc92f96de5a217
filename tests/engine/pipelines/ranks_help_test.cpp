#include <gtest/gtest.h>

#include <cstdint>

#include "engine/check/check.h"
#include "tests/engine/ranks/ranks_in_one_process.h"
#include "tests/engine/ranks_pipeline.h"
#include "tests/engine/tally_nodes.h"
#include "tests/engine/toy_world.h"
#include "tests/sanitized.h"

// Ranks that make groups for each other: several worlds in one process, connected by mail and parcels that come in any order.
namespace sluice::engine::ranks_help_test {
namespace {

using testing::RankOutcome;
using testing::Rows;

// 500 pipelines in all; fewer where a sanitizer makes each many times slower.
constexpr uint64_t kPipelinesATest = tests::kSanitized ? 12 : 125;

class RanksHelp : public ::testing::TestWithParam<uint64_t> {
 protected:
  RanksHelp() {
    toy::register_toys(registry_);
    toy::register_tallies(registry_);
  }

  // Credit is short where there are more groups than a rank has tokens for: no barrier keeps an iteration.
  static toy::RanksShape random_shape(uint64_t seed) {
    toy::RanksShape shape = toy::random_ranks_shape(seed);
    shape.groups = 6 + static_cast<int64_t>(seed % 30);
    shape.whitens = false;
    return shape;
  }

  Registry registry_;
};

// Whoever makes the groups, in whatever order: the lines are those of one process, bit for bit.
TEST_P(RanksHelp, GiveTheMetricsOfOneProcess) {
  double for_others = 0;
  for (uint64_t seed = GetParam() * kPipelinesATest; seed < (GetParam() + 1) * kPipelinesATest; ++seed) {
    SCOPED_TRACE(seed);
    toy::RanksShape shape = random_shape(seed);
    const int size = seed % 2 == 0 ? 2 : 3;
    const CheckResult alone = check(toy::ranks_pipeline(shape, seed), registry_);
    ASSERT_TRUE(alone.plan) << render(alone.problems);
    shape.budget = toy::least_budget(shape, seed, registry_, size);
    const CheckResult shared = check(toy::ranks_pipeline(shape, seed), registry_, size);
    ASSERT_TRUE(shared.plan) << render(shared.problems);
    EXPECT_EQ(shared.plan->shares_making(), shape.budget < shared.plan->main_path().capacity.iteration_tokens);
    const Rows expected = testing::run_rank(*alone.plan).rows;
    for (const RankOutcome& outcome : testing::run_ranks(*shared.plan, seed, shape.pause_us)) {
      ASSERT_EQ(outcome.rows, expected);
      for_others += outcome.for_others;
    }
  }
  EXPECT_GT(for_others, 0) << "no rank has ever made a group for another";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RanksHelp, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace sluice::engine::ranks_help_test
