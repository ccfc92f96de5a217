#include "nodes/advantages/token_rewards.h"

#include "nodes/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Sample sample(float score, std::vector<float> policy, std::vector<float> reference) {
  return Sample()
      .value(columns::kScore, score)
      .actions(columns::kRolloutLogprobs, std::move(policy))
      .actions(columns::kReferenceLogprobs, std::move(reference));
}

TEST(TokenRewards, ScoreGoesToTheLastActionOfEachSample) {
  const NodeHarness<TokenRewards> rewards;
  const auto out = rewards.run({GroupOf{sample(2, {-1, -1, -1}, {0, 0, 0}), sample(-1, {-1}, {0})}});
  EXPECT_THAT(out[columns::kTokenRewards], Near({0, 0, 2, -1}));
}

TEST(TokenRewards, PenaltyIsTheCoefficientTimesTheLogRatio) {
  const NodeHarness<TokenRewards> rewards({.kl_coefficient = 0.1});
  EXPECT_THAT(rewards.run(sample(1, {-1, -2}, {-3, -1}))[columns::kTokenRewards], Near({-0.2, 1.1}));
}

TEST(TokenRewards, EstimatorIsTheOneAskedFor) {
  const auto penalty = [](KlEstimator estimator) {
    return -NodeHarness<TokenRewards>({.kl_coefficient = 1, .kl_estimator = estimator})
                .run(sample(0, {-1}, {-3}))[columns::kTokenRewards][0];
  };
  EXPECT_NEAR(penalty(KlEstimator::kK2), 2, 1e-6);
  EXPECT_NEAR(penalty(KlEstimator::kK3), 1.1353353, 1e-6);  // exp(-2) - 1 + 2
  EXPECT_NEAR(penalty(KlEstimator::kAbs), 2, 1e-6);
}

TEST(TokenRewards, SampleWithoutActionsGetsNothing) {
  const NodeHarness<TokenRewards> rewards({.kl_coefficient = 0.1});
  EXPECT_THAT(rewards.run({GroupOf{sample(5, {}, {}), sample(1, {-1}, {-1})}})[columns::kTokenRewards], Near({1}));
}

TEST(TokenRewards, ReadsTheReferenceOnlyForAPenalty) {
  EXPECT_EQ(NodeHarness<TokenRewards>().needs().reads.size(), 1u);
  EXPECT_EQ(NodeHarness<TokenRewards>({.kl_coefficient = 0.1}).needs().reads.size(), 3u);
}

TEST(TokenRewards, RefusesAnEstimatorThatHasNoEffect) {
  using Harness = NodeHarness<TokenRewards>;
  EXPECT_THAT(Harness::problems({{"kl_estimator", {std::string("k2")}}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(Harness::problems({{"kl_estimator", {std::string("k2")}}, {"kl_coefficient", {0.1}}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes
