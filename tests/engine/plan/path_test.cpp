#include <gtest/gtest.h>

#include "engine/plan/plan.h"

namespace sluice::engine::path_test {
namespace {

// ---- which version an iteration samples with ----

TEST(Path, SamplesWithTheVersionThatIsLagOlder) {
  const PlanPath path{.follows_versions = true, .policy_lag = 2};
  EXPECT_EQ(path.version_for(0), 0);
  EXPECT_EQ(path.version_for(2), 0);
  EXPECT_EQ(path.version_for(5), 3);
}

TEST(Path, HasOneVersionWhereNothingIsTrained) {
  const PlanPath path{.follows_versions = false};
  EXPECT_EQ(path.version_for(1000), 0);
}

TEST(Path, ThatMeasuresSamplesWhatItsIterationLeaves) {
  const PlanPath path{.settings = {.every_iterations = 5}, .follows_versions = true};
  EXPECT_EQ(path.version_for(0), 1);
  EXPECT_EQ(path.version_for(4), 5);
}

TEST(Path, ThatMeasuresBeforeTrainingBeginsWithTheFirstVersion) {
  const PlanPath path{.settings = {.every_iterations = 5, .before_training = true}, .follows_versions = true};
  EXPECT_EQ(path.version_for(0), 0);
  EXPECT_EQ(path.version_for(4), 5);
}

// ---- for which paths ranks make groups for each other ----

class SharedMaking : public ::testing::Test {
 protected:
  SharedMaking() {
    rollout_.kind = NodeKind::kRollout;
    plan_.ranks = 2;
    plan_.nodes.resize(2);
    plan_.nodes[1].type = &rollout_;
    plan_.nodes[1].needs.on_demand_tokens = 10;
    plan_.paths.push_back({.source = 0, .rollout = 1, .tokens_in_flight = 99, .capacity = {.iteration_tokens = 100}});
  }

  NodeType rollout_;
  Plan plan_;
};

TEST_F(SharedMaking, IsForPathsWithARollout) {
  plan_.paths.push_back({.source = 0});
  EXPECT_TRUE(plan_.shares_making(plan_.paths[0]));
  EXPECT_FALSE(plan_.shares_making(plan_.paths[1]));
  EXPECT_TRUE(plan_.shares_making());
}

TEST_F(SharedMaking, IsNotWhereARankHasRoomForAllItsGroups) {
  plan_.paths[0].tokens_in_flight = 100;
  EXPECT_FALSE(plan_.shares_making());
  EXPECT_TRUE(plan_.shares_making(plan_.paths[0], 99));
}

TEST_F(SharedMaking, IsNotForOneRank) {
  plan_.ranks = 1;
  EXPECT_FALSE(plan_.shares_making());
}

TEST_F(SharedMaking, IsNotForPathsThatMeasure) {
  plan_.paths[0].settings.every_iterations = 3;
  EXPECT_FALSE(plan_.shares_making());
}

TEST_F(SharedMaking, IsNotForGroupsThatTakeCreditOnDemand) {
  plan_.budget.admission = Admission::kOnDemand;
  EXPECT_FALSE(plan_.shares_making());
  plan_.nodes[1].needs.on_demand_tokens = 0;  // this rollout takes the worst case at once
  EXPECT_TRUE(plan_.shares_making());
}

// ---- in which iterations a path measures ----

std::vector<int64_t> due(const SourceSettings& settings, int64_t iterations) {
  std::vector<int64_t> due;
  for (int64_t i = 0; i < iterations; ++i) {
    if (settings.is_due(i, iterations)) due.push_back(i);
  }
  return due;
}

TEST(Path, MeasuresAfterSoManyIterationsAndAfterTheLast) {
  EXPECT_EQ(due({.every_iterations = 4}, 10), (std::vector<int64_t>{3, 7, 9}));
  EXPECT_EQ(due({.every_iterations = 5}, 10), (std::vector<int64_t>{4, 9}));
  EXPECT_EQ(due({.every_iterations = 20}, 10), (std::vector<int64_t>{9}));
}

TEST(Path, MeasuresBeforeTrainingInTheFirstIteration) {
  EXPECT_EQ(due({.every_iterations = 4, .before_training = true}, 10), (std::vector<int64_t>{0, 3, 7, 9}));
  EXPECT_EQ(due({.before_training = true}, 10), (std::vector<int64_t>{0, 9}));
}

}  // namespace
}  // namespace sluice::engine::path_test
