#include "nodes/advantages/remax.h"

#include "tests/nodes/node_harness.h"

namespace sluice::nodes::remax_test {
namespace {

using ::testing::ElementsAre;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Sample scored(float score, size_t actions) {
  return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, std::vector<float>(actions, -1));
}

TEST(ReMax, ComparesWithTheBaselineOfItsGroup) {
  const auto out = NodeHarness<ReMax>().run({GroupOf{scored(1, 2), scored(0, 1)}.value(columns::kBaselineScore, 1.0f),
                                             GroupOf{scored(5, 1), scored(9, 0)}.value(columns::kBaselineScore, 2.0f)});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(0, 0, -1, 3));
}

TEST(ReMax, TokenRewardsAddUpFromTheActionOn) {
  const auto sample = Sample().actions(columns::kTokenRewards, {1.0f, 2.0f, 3.0f});
  const auto out = NodeHarness<ReMax>().run(std::vector{GroupOf{sample}.value(columns::kBaselineScore, 1.0f)});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(5, 4, 2));
}

TEST(ReMax, MaskedActionsAreLeftOut) {
  const auto sample = Sample().actions(columns::kTokenRewards, {1.0f, kNan, 3.0f}).actions(columns::kMask, {1.0f, 0.0f, 1.0f});
  const auto out = NodeHarness<ReMax>().run(std::vector{GroupOf{sample}.value(columns::kBaselineScore, 1.0f)});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(3, 0, 2));
}

TEST(ReMax, NothingAtAllRecordsNothing) {
  const auto out = NodeHarness<ReMax>().run(std::vector{GroupOf{scored(1, 0)}.value(columns::kBaselineScore, 1.0f)});
  EXPECT_TRUE(out.metrics().empty());
}

}  // namespace
}  // namespace sluice::nodes::remax_test
