#include "nodes/advantages/grpo.h"

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::grpo_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kRoot2 = 1.4142135623730951;

GroupOf pair(float a, float b) {
  const auto sample = [](float score) {
    return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, {-1.0f});
  };
  return {sample(a), sample(b)};
}

std::vector<float> advantages(const GrpoParams& params, std::vector<GroupOf> groups) {
  return NodeHarness<Grpo>(params).run(std::move(groups))[columns::kAdvantages];
}

TEST(Grpo, AgreesWithSkyRlWithoutTheStd) {
  const auto entry = reference_case("grpo_no_std");
  if (!entry) GTEST_SKIP() << "no test data";
  const auto rewards = (*entry)["rewards"].get<std::vector<float>>();
  EXPECT_THAT(advantages({.normalize_std = false}, {pair(rewards[0], rewards[1]), pair(rewards[2], rewards[3])}),
              Near((*entry)["expect"]["advantages"].get<std::vector<double>>()));
}

TEST(Grpo, DividesByTheStdPlusEpsilon) {
  EXPECT_THAT(advantages({}, {pair(0, 2)}), Near({-1 / kRoot2, 1 / kRoot2}));
  EXPECT_THAT(advantages({.epsilon = 1, .std = Variance::kBiased}, {pair(0, 2)}), Near({-0.5, 0.5}));
}

TEST(Grpo, EpsilonMayBeUnderTheRoot) {
  EXPECT_THAT(advantages({.epsilon = 7, .epsilon_placement = EpsilonPlacement::kInside}, {pair(0, 2)}),
              Near({-1.0 / 3, 1.0 / 3}));  // sqrt(2 + 7)
}

// Of two samples each is compared with one, which has no std: nothing is divided.
TEST(Grpo, LeavesEachSampleOutOfItsOwnBaseline) {
  EXPECT_THAT(advantages({.baseline = GrpoBaseline::kLeaveOneOut}, {pair(0, 2)}), Near({-2, 2}));
  const auto sample = [](float score) {
    return Sample().value(columns::kScore, score).actions(columns::kRolloutLogprobs, {-1.0f});
  };
  EXPECT_THAT(advantages({.epsilon = 0, .baseline = GrpoBaseline::kLeaveOneOut}, {GroupOf{sample(0), sample(2), sample(4)}}),
              Near({-3 / kRoot2, 0, 3 / kRoot2}));
}

// Rewards 0, 2, 10, 14: mean 6.5, squares 42.25 + 20.25 + 12.25 + 56.25 = 131, over 3.
TEST(Grpo, StdMayBeThatOfTheIteration) {
  const NodeHarness<Grpo> grpo({.epsilon = 0, .std_over = StdOver::kIteration});
  EXPECT_EQ(grpo.needs().scope, engine::Scope::kIteration);
  const double std = std::sqrt(131.0 / 3);
  EXPECT_THAT(grpo.run({pair(0, 2), pair(10, 14)}, {1, 1})[columns::kAdvantages], Near({-1 / std, 1 / std, -2 / std, 2 / std}));
}

// Steps 1 and 3 in the first sample, 2 in the second: mean 2, std 1.
TEST(Grpo, RewardsOfStepsAddUpFromTheActionOn) {
  const auto sample = [](std::vector<float> steps) { return Sample().actions(columns::kStepRewards, std::move(steps)); };
  EXPECT_THAT(
      advantages({.epsilon = 1, .supervision = Supervision::kProcess}, {GroupOf{sample({kNan, 1, 3, kNan}), sample({2, kNan})}}),
      Near({0, 0, 0.5, 0, 0, 0}));
}

TEST(Grpo, MaskedStepsDoNotCount) {
  const auto sample = [](std::vector<float> steps, std::vector<float> mask) {
    return Sample().actions(columns::kStepRewards, std::move(steps)).actions(columns::kMask, std::move(mask));
  };
  EXPECT_THAT(advantages({.normalize_std = false, .supervision = Supervision::kProcess},
                         {GroupOf{sample({0, 9}, {1, 0}), sample({kNan, 4}, {1, 1})}}),
              Near({-2, 0, 2, 2}));
}

TEST(Grpo, GroupWithoutStepsIsZero) {
  const auto sample = [](std::vector<float> steps) { return Sample().actions(columns::kStepRewards, std::move(steps)); };
  EXPECT_THAT(advantages({.supervision = Supervision::kProcess}, {GroupOf{sample({kNan}), sample({})}}), ElementsAre(0));
}

TEST(Grpo, ReadsWhatItsSupervisionIs) {
  EXPECT_THAT(NodeHarness<Grpo>().needs().reads, IsEmpty());
  EXPECT_EQ(NodeHarness<Grpo>().needs().choices.front().columns.size(), 2u);
  EXPECT_EQ(NodeHarness<Grpo>({.supervision = Supervision::kProcess}).needs().reads.front().name, "step_rewards");
}

TEST(Grpo, RefusesSettingsThatContradictEachOther) {
  using Harness = NodeHarness<Grpo>;
  const engine::Value off{false}, process{std::string("process")}, iteration{std::string("iteration")},
      one_out{std::string("leave_one_out")};
  EXPECT_THAT(Harness::problems({{"normalize_std", off}, {"epsilon", {0.5}}}), ElementsAre(HasSubstr("no effect")));
  EXPECT_THAT(Harness::problems({{"std_over", iteration}, {"baseline", one_out}}), ElementsAre(HasSubstr("leave_one_out")));
  EXPECT_THAT(Harness::problems({{"supervision", process}, {"baseline", one_out}}), ElementsAre(HasSubstr("steps")));
  EXPECT_THAT(Harness::problems({{"supervision", process}, {"std_over", iteration}}), ElementsAre(HasSubstr("steps")));
  EXPECT_THAT(Harness::problems({{"supervision", process}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::grpo_test
