#include "nodes/rewards/compare_scores.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::compare_scores_test {
namespace {

constexpr engine::Column<float> kReward{"reward", engine::Extent::kSample};

Sample sample(float score, float reward) { return Sample().value(columns::kScore, score).value(kReward, reward); }

std::map<std::string, double> metrics_of(std::vector<GroupOf> groups) {
  return NodeHarness<CompareScores>({.column = "reward"}).run(std::move(groups)).metrics();
}

TEST(CompareScores, AccuracyIsTheShareOfPairsThatAreOrderedAlike) {
  const auto found = metrics_of({{sample(1, 3), sample(0, -1)}, {sample(2, 0), sample(1, 1), sample(0, -2)}});
  EXPECT_NEAR(found.at("reward/reward_accuracy"), 3.0 / 4, 1e-12);
  EXPECT_NEAR(found.at("reward/reward_margin"), (4 - 1 + 2 + 3) / 4.0, 1e-12);
}

TEST(CompareScores, ScoreThatIsNotFiniteIsNamed) {
  EXPECT_THAT(
      [] {
        metrics_of({{sample(1, 3), sample(0, std::nanf(""))}});
      },
      ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("'reward' is nan for sample 1 of group 0")));
}

TEST(CompareScores, EqualRewardsCountHalf) {
  EXPECT_EQ(metrics_of({{sample(1, 3), sample(0, 3)}}).at("reward/reward_accuracy"), 0.5);
}

TEST(CompareScores, PairsThatAreNotToldApartDoNotCount) {
  EXPECT_TRUE(metrics_of({{sample(1, 3), sample(1, 5)}, {sample(0, 2)}}).empty());
}

TEST(CompareScores, PairsWithAMaskedSampleDoNotCount) {
  const auto masked = [](Sample made, float mask) { return made.actions(columns::kMask, {mask}); };
  const auto found = metrics_of({{masked(sample(1, 3), 1), masked(sample(0, 1), 1), masked(sample(0.5, 9), 0)}});
  EXPECT_EQ(found.at("reward/reward_accuracy"), 1);
  EXPECT_EQ(found.at("reward/reward_margin"), 2);
}

}  // namespace
}  // namespace sluice::nodes::compare_scores_test
