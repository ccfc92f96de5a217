#include "nodes/advantages/group_relative.h"

#include <cmath>

#include "base/error.h"
#include "nodes/advantages/grpo.h"
#include "nodes/advantages/maxrl.h"
#include "nodes/advantages/opo.h"
#include "nodes/advantages/pass_at_k.h"
#include "nodes/advantages/rloo.h"
#include "tests/nodes/node_harness.h"

// What all advantages that compare the samples of a group have in common; their formulas have tests of their own.
namespace sluice::nodes::group_relative_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Sample scored(float score, size_t actions = 1) {
  return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, std::vector<float>(actions, -1));
}

Sample masked(float score, std::vector<float> mask) {
  return Sample().value(columns::kScore, score).actions(columns::kMask, std::move(mask));
}

TEST(GroupRelative, ValueIsRepeatedOnTheActionsOfItsSample) {
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{scored(3, 2), scored(1, 3)}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(2, 2, -2, -2, -2));
}

TEST(GroupRelative, GroupsAreIndependentOfEachOtherAndOfTheMicroBatching) {
  const std::vector<GroupOf> groups{GroupOf{scored(6), scored(3)}, GroupOf{scored(9), scored(12)}};
  EXPECT_THAT(NodeHarness<Rloo>().run(groups)[columns::kAdvantages], ElementsAre(3, -3, -3, 3));
  EXPECT_THAT(NodeHarness<Rloo>().run(groups, {1, 1})[columns::kAdvantages], ElementsAre(3, -3, -3, 3));
}

TEST(GroupRelative, EqualScoresGiveExactlyZero) {
  const std::vector group{GroupOf{scored(0.1f), scored(0.1f), scored(0.1f)}};
  EXPECT_THAT(NodeHarness<Grpo>().run(group)[columns::kAdvantages], Each(0.0f));
  EXPECT_THAT(NodeHarness<Grpo>({.epsilon = 0}).run(group)[columns::kAdvantages], Each(0.0f));
  EXPECT_THAT(NodeHarness<Grpo>({.baseline = GrpoBaseline::kLeaveOneOut}).run(group)[columns::kAdvantages], Each(0.0f));
  EXPECT_THAT(NodeHarness<Rloo>().run(group)[columns::kAdvantages], Each(0.0f));
  EXPECT_THAT(NodeHarness<MaxRl>().run(group)[columns::kAdvantages], Each(0.0f));
  EXPECT_THAT(NodeHarness<Opo>().run(group)[columns::kAdvantages], Each(0.0f));
}

// Their sum has more bits than that of scores, so that the quotient of sum and count is not the reward itself.
TEST(GroupRelative, EqualSumsOfTokenRewardsGiveExactlyZero) {
  const Sample one = Sample().actions(columns::kTokenRewards, {0.3f, 1e-9f});
  const std::vector group{GroupOf{one, one, one, one, one, one, one}};
  const auto expect_zero = [&](const auto& node) {
    const auto out = node.run(group);
    EXPECT_THAT(out[columns::kAdvantages], Each(0.0f));
    EXPECT_EQ(out.metrics().at("advantage/zero_advantages"), 1);
    EXPECT_EQ(out.metrics().at("advantage/group_std_mean"), 0);
  };
  expect_zero(NodeHarness<Grpo>());
  expect_zero(NodeHarness<Grpo>({.epsilon = 0}));
  expect_zero(NodeHarness<Grpo>({.epsilon = 0, .baseline = GrpoBaseline::kLeaveOneOut}));
  expect_zero(NodeHarness<Rloo>());
  expect_zero(NodeHarness<MaxRl>());
  expect_zero(NodeHarness<Opo>());
}

TEST(GroupRelative, SampleAloneIsZeroOrItsScore) {
  const std::vector group{GroupOf{scored(7)}};
  EXPECT_THAT(NodeHarness<Grpo>().run(group)[columns::kAdvantages], ElementsAre(0));
  EXPECT_THAT(NodeHarness<Rloo>().run(group)[columns::kAdvantages], ElementsAre(0));
  EXPECT_THAT(NodeHarness<Grpo>({.lone_sample = LoneSample::kScore}).run(group)[columns::kAdvantages], ElementsAre(7));
  EXPECT_THAT(NodeHarness<Rloo>({.lone_sample = LoneSample::kScore}).run(group)[columns::kAdvantages], ElementsAre(7));
  EXPECT_THAT(NodeHarness<MaxRl>({.lone_sample = LoneSample::kScore}).run(group)[columns::kAdvantages], ElementsAre(7));
  EXPECT_THAT(NodeHarness<Opo>({.lone_sample = LoneSample::kScore}).run(group)[columns::kAdvantages], ElementsAre(7));
}

TEST(GroupRelative, SampleWithoutActionsCounts) {
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{scored(4, 0), scored(1, 1), scored(0, 1)}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(-1, -2.5));
}

TEST(GroupRelative, FullyMaskedSampleDoesNotCountWhateverItsScore) {
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{masked(3, {1, 1}), masked(kNan, {0, 0}), masked(1, {1})}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(2, 2, 0, 0, -2));
}

TEST(GroupRelative, MaskedActionGetsZeroAndTheWeightOfOthersChangesNothing) {
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{masked(3, {0.5f, 0}), masked(1, {0, 2})}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(2, 0, 0, -2));
}

TEST(GroupRelative, ScoreThatIsNotFiniteIsNamed) {
  const std::vector groups{GroupOf{scored(1), scored(0)}, GroupOf{scored(1, 0), scored(kNan), scored(1)}};
  const auto expect_named = [&](const auto& node) {
    EXPECT_THAT([&] { node.run(groups); }, ThrowsMessage<UserError>(HasSubstr("'score' is nan for sample 1 of group 1")));
  };
  expect_named(NodeHarness<Grpo>());
  expect_named(NodeHarness<Grpo>({.std_over = StdOver::kIteration}));
  expect_named(NodeHarness<Rloo>());
  expect_named(NodeHarness<MaxRl>());
  expect_named(NodeHarness<Opo>());
  expect_named(NodeHarness<PassAtK>({.k = 1}));
  const std::vector infinite{GroupOf{scored(1), scored(-INFINITY)}};
  EXPECT_THAT([&] { NodeHarness<Rloo>().run(infinite); }, ThrowsMessage<UserError>(HasSubstr("'score' is infinite")));
}

TEST(GroupRelative, TokenRewardThatIsNotFiniteIsNamed) {
  const std::vector group{
      GroupOf{Sample().actions(columns::kTokenRewards, {0.0f}), Sample().actions(columns::kTokenRewards, {0.0f, 1.0f, kNan})}};
  EXPECT_THAT([&] { NodeHarness<Rloo>().run(group); },
              ThrowsMessage<UserError>(HasSubstr("'token_rewards' is nan for action 2 of sample 1 of group 0")));
}

TEST(GroupRelative, TokenRewardsWinOverTheScore) {
  const auto sample = [](float score, std::vector<float> rewards) {
    return Sample().value(columns::kScore, score).actions(columns::kTokenRewards, std::move(rewards));
  };
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{sample(100, {1, 2}), sample(-100, {1})}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(2, 2, -2));
}

TEST(GroupRelative, MaskedTokenRewardsAreLeftOut) {
  const auto sample = [](std::vector<float> rewards, std::vector<float> mask) {
    return Sample().actions(columns::kTokenRewards, std::move(rewards)).actions(columns::kMask, std::move(mask));
  };
  const auto out = NodeHarness<Rloo>().run(std::vector{GroupOf{sample({1, kNan}, {1, 0}), sample({0, 0}, {1, 1})}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(1, 0, -1, -1));
}

TEST(GroupRelative, RecordsSpreadAndTheShareOfUselessGroups) {
  const auto metrics =
      NodeHarness<Rloo>().run({GroupOf{scored(1), scored(3)}, GroupOf{scored(2), scored(2)}, GroupOf{scored(5)}}).metrics();
  EXPECT_NEAR(metrics.at("advantage/group_std_mean"), 1.4142136 / 2, 1e-6);
  EXPECT_NEAR(metrics.at("advantage/zero_advantages"), 2.0 / 3, 1e-9);
}

TEST(GroupRelative, NothingAtAllRecordsNothing) {
  const auto out = NodeHarness<Grpo>().run(std::vector{GroupOf{masked(1, {0})}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(0));
  EXPECT_TRUE(out.metrics().empty());
}

}  // namespace
}  // namespace sluice::nodes::group_relative_test
