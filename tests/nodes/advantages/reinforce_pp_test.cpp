#include "nodes/advantages/reinforce_pp.h"

#include "base/error.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::reinforce_pp_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

ReinforcePpParams unwhitened() {
  ReinforcePpParams params;
  params.whiten = Whitening::kNone;
  return params;
}

Sample rewarded(std::vector<float> rewards) { return Sample().actions(columns::kTokenRewards, std::move(rewards)); }
Sample scored(float score, size_t actions) {
  return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, std::vector<float>(actions, -1));
}

TEST(ReinforcePp, AgreesWithSkyRlOnMaskedReturns) {
  const auto entry = reference_case("reinforcepp_reset_after_eos");
  if (!entry) GTEST_SKIP() << "no test data";
  const auto out = NodeHarness<ReinforcePp>().run(rewarded((*entry)["token_rewards"].get<std::vector<float>>())
                                                      .actions(columns::kMask, (*entry)["mask"].get<std::vector<float>>()));
  EXPECT_THAT(out[columns::kReturns], Near((*entry)["expect"]["returns"].get<std::vector<double>>()));
  EXPECT_THAT(out[columns::kAdvantages], Near({0.7071068, -0.7071068, 0}));  // of 3 and 2
}

TEST(ReinforcePp, ReturnIsDiscounted) {
  ReinforcePpParams params = unwhitened();
  params.discount = 0.5;
  EXPECT_THAT(NodeHarness<ReinforcePp>(params).run(rewarded({1, 2, 3}))[columns::kReturns], ElementsAre(2.75, 3.5, 3));
}

TEST(ReinforcePp, WhitensOverTheIterationByDefault) {
  const NodeHarness<ReinforcePp> node;
  EXPECT_EQ(node.needs().scope, engine::Scope::kIteration);
  const auto out = node.run({GroupOf{rewarded({1})}, GroupOf{rewarded({3})}}, {1, 1});
  EXPECT_THAT(out[columns::kAdvantages], Near({-0.7071068, 0.7071068}));
  EXPECT_THAT(out[columns::kReturns], ElementsAre(1, 3));
}

TEST(ReinforcePp, ScoreStandsOnTheLastActionThatCounts) {
  ReinforcePpParams params = unwhitened();
  params.discount = 0.5;
  const auto out = NodeHarness<ReinforcePp>(params).run(scored(4, 3).actions(columns::kMask, {1.0f, 1.0f, 0.0f}));
  EXPECT_THAT(out[columns::kReturns], ElementsAre(2, 4, 0));
}

TEST(ReinforcePp, BaselineIsTheMeanScoreOfTheGroup) {
  ReinforcePpParams params = unwhitened();
  params.baseline = ReinforceBaseline::kGroupMean;
  const auto out = NodeHarness<ReinforcePp>(params).run(std::vector{GroupOf{scored(1, 2), scored(3, 1), scored(5, 0)}});
  EXPECT_THAT(out[columns::kReturns], ElementsAre(-2, -2, 0));
}

TEST(ReinforcePp, BaselineLeavesThePenaltyOfTokenRewards) {
  ReinforcePpParams params = unwhitened();
  params.baseline = ReinforceBaseline::kGroupMean;
  const auto sample = [](float score, std::vector<float> rewards) {
    return rewarded(std::move(rewards)).value(columns::kScore, score);
  };
  const auto out = NodeHarness<ReinforcePp>(params).run(std::vector{GroupOf{sample(1, {-0.5, 1}), sample(3, {3})}});
  EXPECT_THAT(out[columns::kReturns], ElementsAre(-1.5, -1, 1));
}

TEST(ReinforcePp, FullyMaskedSampleHasNoPartInTheBaseline) {
  ReinforcePpParams params = unwhitened();
  params.baseline = ReinforceBaseline::kGroupMean;
  const auto sample = [](float score, float mask) {
    return Sample().value(columns::kScore, score).actions(columns::kMask, {mask});
  };
  const auto out = NodeHarness<ReinforcePp>(params).run(std::vector{GroupOf{sample(1, 1), sample(kNan, 0), sample(2, 1)}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(-0.5, 0, 0.5));
}

TEST(ReinforcePp, NanUnderAMaskIsHarmless) {
  const auto out = NodeHarness<ReinforcePp>().run(rewarded({1, kNan, 2}).actions(columns::kMask, {1.0f, 0.0f, 1.0f}));
  EXPECT_THAT(out[columns::kAdvantages], Near({-0.7071068, 0, 0.7071068}));
}

TEST(ReinforcePp, ScoreThatIsNotFiniteIsNamed) {
  for (const ReinforceBaseline baseline : {ReinforceBaseline::kNone, ReinforceBaseline::kGroupMean}) {
    ReinforcePpParams params = unwhitened();
    params.baseline = baseline;
    const Sample wrong = Sample().value(columns::kScore, kNan).actions(columns::kRolloutLogprobs, {-1});
    EXPECT_THAT([&] { NodeHarness<ReinforcePp>(params).run(wrong); },
                ThrowsMessage<UserError>(HasSubstr("'score' is nan for sample 0 of group 0")));
  }
}

TEST(ReinforcePp, NothingAtAllIsFine) {
  const auto out = NodeHarness<ReinforcePp>().run(rewarded({}));
  EXPECT_TRUE(out[columns::kAdvantages].empty());
  EXPECT_THAT(out.metrics(), IsEmpty());
  EXPECT_THAT(NodeHarness<ReinforcePp>().run(rewarded({2}).actions(columns::kMask, {0.0f})).metrics(), IsEmpty());
}

TEST(ReinforcePp, RefusesWhiteningThatIsNotDone) {
  using Harness = NodeHarness<ReinforcePp>;
  const engine::Value none{std::string("none")}, biased{std::string("biased")};
  EXPECT_THAT(Harness::problems({{"whiten", none}, {"whiten_variance", biased}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(Harness::problems({{"whiten_variance", biased}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::reinforce_pp_test
