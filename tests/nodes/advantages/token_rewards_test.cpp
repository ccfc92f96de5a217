#include "nodes/advantages/token_rewards.h"

#include <cmath>

#include "base/error.h"
#include "nodes/advantages/adaptive_kl.h"
#include "nodes/advantages/fixed_kl.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/saved_state.h"

namespace sluice::nodes::token_rewards_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TokenRewardsParams penalty(double coefficient, KlEstimator estimator = KlEstimator::kK1) {
  TokenRewardsParams params;
  params.kl_coefficient = coefficient;
  params.kl_estimator = estimator;
  return params;
}

// Binds as a pipeline does, with the controllers that there are.
std::vector<std::string> problems(std::vector<std::pair<std::string, engine::Value>> keys) {
  const auto add_controllers = [](engine::Registry& registry) {
    registry.add_component<KlController, FixedKl>();
    registry.add_component<KlController, AdaptiveKl>();
  };
  return NodeHarness<TokenRewards>::problems_beside(add_controllers, std::move(keys));
}

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
  const NodeHarness<TokenRewards> rewards(penalty(0.1));
  EXPECT_THAT(rewards.run(sample(1, {-1, -2}, {-3, -1}))[columns::kTokenRewards], Near({-0.2, 1.1}));
}

TEST(TokenRewards, EstimatorIsTheOneAskedFor) {
  const auto penalty_by = [](KlEstimator estimator) {
    return -NodeHarness<TokenRewards>(penalty(1, estimator)).run(sample(0, {-1}, {-3}))[columns::kTokenRewards][0];
  };
  EXPECT_NEAR(penalty_by(KlEstimator::kK2), 2, 1e-6);
  EXPECT_NEAR(penalty_by(KlEstimator::kK3), 1.1353353, 1e-6);  // exp(-2) - 1 + 2
  EXPECT_NEAR(penalty_by(KlEstimator::kAbs), 2, 1e-6);
}

TEST(TokenRewards, SampleWithoutActionsGetsNothing) {
  const NodeHarness<TokenRewards> rewards(penalty(0.1));
  EXPECT_THAT(rewards.run({GroupOf{sample(5, {}, {}), sample(1, {-1}, {-1})}})[columns::kTokenRewards], Near({1}));
}

TEST(TokenRewards, ReadsTheReferenceOnlyForAPenalty) {
  EXPECT_EQ(NodeHarness<TokenRewards>().needs().reads.size(), 1u);
  EXPECT_EQ(NodeHarness<TokenRewards>(penalty(0.1)).needs().reads.size(), 3u);
}

TEST(TokenRewards, ClampsBoundThePenalty) {
  TokenRewardsParams params = penalty(1, KlEstimator::kK2);
  params.clamp_input = 2;
  params.clamp_output = 1.5;
  EXPECT_THAT(NodeHarness<TokenRewards>(params).run(sample(0, {-1, -1}, {-9, 0}))[columns::kTokenRewards], Near({-1.5, -0.5}));
}

TEST(TokenRewards, ScoreIsClippedAndThePenaltyIsNot) {
  TokenRewardsParams params = penalty(1);
  params.score_clip = {-1, 2};
  const auto out =
      NodeHarness<TokenRewards>(params).run({GroupOf{sample(5, {-1}, {-9}), sample(-5, {-1}, {-1}), sample(1, {-1}, {-1})}});
  EXPECT_THAT(out[columns::kTokenRewards], Near({-6, -1, 1}));
}

TEST(TokenRewards, RewardsOfStepsAreAddedWhereTheyEnd) {
  const auto out =
      NodeHarness<TokenRewards>().run(sample(2, {-1, -1, -1}, {0, 0, 0}).actions(columns::kStepRewards, {0.5f, kNan, -1.0f}));
  EXPECT_THAT(out[columns::kTokenRewards], Near({0.5, 0, 1}));
}

TEST(TokenRewards, MaskedActionGetsNothingAndTheScoreGoesToTheLastOther) {
  const auto out = NodeHarness<TokenRewards>(penalty(1))
                       .run({GroupOf{sample(3, {-1, -1, kNan}, {-2, -2, -1}).actions(columns::kMask, {1.0f, 0.5f, 0.0f}),
                                     sample(kNan, {kNan}, {-1}).actions(columns::kMask, {0.0f})}});
  EXPECT_THAT(out[columns::kTokenRewards], Near({-1, 2, 0, 0}));
}

TEST(TokenRewards, ScoreOrStepThatIsNotFiniteIsNamed) {
  TokenRewardsParams clipped;
  clipped.score_clip = {-1, 1};
  for (const TokenRewardsParams& params : {TokenRewardsParams(), clipped}) {
    EXPECT_THAT([&] { NodeHarness<TokenRewards>(params).run(sample(INFINITY, {-1}, {-1})); },
                ThrowsMessage<UserError>(HasSubstr("'score' is infinite for sample 0 of group 0")));
  }
  const Sample wrong = sample(1, {-1, -1}, {-1, -1}).actions(columns::kStepRewards, {kNan, INFINITY});
  EXPECT_THAT([&] { NodeHarness<TokenRewards>().run(wrong); },
              ThrowsMessage<UserError>(HasSubstr("'step_rewards' is infinite for action 1 of sample 0 of group 0")));
}

TEST(TokenRewards, NothingAtAllRecordsNoMeans) {
  EXPECT_THAT(NodeHarness<TokenRewards>(penalty(0.1)).run(sample(1, {}, {})).metrics(), ::testing::SizeIs(1));  // kl_coefficient
}

// The coefficients of a few iterations, each with two samples whose k1 are {1, 1, 1, 1} and {0, 0}: a mean of 2 for the sums over
// actions, of 0.5 for the means.
// After `saved_after` of them another node goes on from what the first has saved.
std::vector<double> adaptive_coefficients(KlMeasure measure, double target, int saved_after = 3) {
  auto params = std::make_shared<TokenRewardsParams>();
  params->kl_controller.object = std::make_shared<AdaptiveKl>(AdaptiveKlParams{.initial = 0.5, .target = target, .horizon = 10});
  params->kl_measure = measure;
  engine::MetricsRecorder metrics;
  engine::Totals totals;
  engine::NodeResources resources;
  resources.metrics = &metrics;
  resources.totals = &totals;
  auto node = std::make_unique<TokenRewards>(*params, resources);

  engine::Registry registry;
  registry.add<TokenRewards>();
  engine::NodeType type = registry.nodes().begin()->second;
  type.make = [&](const void*, engine::NodeResources&) { return std::make_unique<ForwardTo>(*node); };
  const GroupOf group{sample(0, {-1, -1, -1, -1}, {-2, -2, -2, -2}), sample(0, {-1, -1}, {-1, -1})};
  std::vector<double> coefficients;
  for (int i = 0; i < 3; ++i) {
    if (i == saved_after) {
      const engine::NodeState state = state_of(*node);
      node = std::make_unique<TokenRewards>(*params, resources);
      go_on(*node, state);
    }
    const auto outcome = engine::try_node(
        {.type = &type, .params = params, .resources = resources, .groups = {group.built()}, .groups_per_batch = {}});
    const std::map<std::string, double> row(outcome.metrics.begin(), outcome.metrics.end());
    coefficients.push_back(row.at("reward/kl_coefficient"));
    EXPECT_NEAR(outcome.columns.front().data.entries<float>()[0], -coefficients.back(), 1e-6);
  }
  return coefficients;
}

// The error is bounded by 0.2, and an iteration has 2 of the horizon's 10 samples.
TEST(TokenRewards, AdaptiveCoefficientSteersTheMeanOfTheSums) {
  EXPECT_THAT(adaptive_coefficients(KlMeasure::kSequence, 2), Near({0.5, 0.5, 0.5}));
  EXPECT_THAT(adaptive_coefficients(KlMeasure::kSequence, 1), Near({0.5, 0.5 * 1.04, 0.5 * 1.04 * 1.04}));
}

TEST(TokenRewards, AdaptiveCoefficientSteersTheMeanOfTheMeans) {
  EXPECT_THAT(adaptive_coefficients(KlMeasure::kToken, 0.5), Near({0.5, 0.5, 0.5}));
  EXPECT_THAT(adaptive_coefficients(KlMeasure::kToken, 1), Near({0.5, 0.5 * 0.96, 0.5 * 0.96 * 0.96}));
}

TEST(TokenRewards, AdaptiveCoefficientGoesOnToTheLastBit) {
  const auto whole = adaptive_coefficients(KlMeasure::kSequence, 1.1);
  for (const int saved_after : {0, 1, 2}) EXPECT_EQ(adaptive_coefficients(KlMeasure::kSequence, 1.1, saved_after), whole);
}

TEST(TokenRewards, RefusesAScheduleBesideAnAdaptiveController) {
  const engine::Value adaptive{std::string("adaptive_kl")};
  engine::Value schedule{engine::Table{}};
  auto& table = std::get<engine::Table>(schedule.data);
  table.entries.push_back({"from", {}, {0.1}});
  table.entries.push_back({"to", {}, {0.0}});
  EXPECT_THAT(problems({{"kl_coefficient", schedule}}), IsEmpty());
  EXPECT_THAT(problems({{"kl_controller", adaptive}, {"kl_coefficient", schedule}}), ElementsAre(HasSubstr("no effect")));
}

TEST(TokenRewards, RefusesKeysWithoutEffect) {
  const engine::Value k2{std::string("k2")}, adaptive{std::string("adaptive_kl")}, token{std::string("token")};
  EXPECT_THAT(problems({{"kl_estimator", k2}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(problems({{"clamp_input", {1.0}}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(problems({{"kl_estimator", k2}, {"kl_coefficient", {0.1}}}), IsEmpty());
  EXPECT_THAT(problems({{"kl_measure", token}, {"kl_coefficient", {0.1}}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(problems({{"kl_controller", adaptive}, {"kl_coefficient", {0.1}}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(problems({{"kl_controller", adaptive}, {"kl_measure", token}, {"kl_estimator", k2}}), IsEmpty());
}

TEST(TokenRewards, RefusesBoundsThatAreNoBounds) {
  const auto clip = [](std::vector<double> bounds) {
    engine::Array array;
    for (const double bound : bounds) array.push_back({bound});
    return problems({{"score_clip", {array}}});
  };
  EXPECT_THAT(clip({1}), ElementsAre(HasSubstr("score_clip")));
  EXPECT_THAT(clip({1, -1}), ElementsAre(HasSubstr("score_clip")));
  EXPECT_THAT(clip({-1, 1}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::token_rewards_test
