#include "nodes/advantages/gdpo.h"

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::gdpo_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr engine::Column<float> kCorrect{"correct", engine::Extent::kSample};
constexpr engine::Column<float> kFormat{"format", engine::Extent::kSample};
constexpr double kRoot2 = 1.4142135623730951;

GdpoParams params(std::vector<double> weights = {}, bool over_iteration = true, double epsilon = 0) {
  return {{.scores = {"correct", "format"}, .weights = std::move(weights)}, over_iteration, epsilon};
}

Sample scored(float correct, float format, size_t actions = 1) {
  return Sample()
      .value(kCorrect, correct)
      .value(kFormat, format)
      .actions(columns::kRolloutLogprobs, std::vector<float>(actions, -1));
}

std::vector<float> advantages(const GdpoParams& params, std::vector<GroupOf> groups) {
  return NodeHarness<Gdpo>(params).run(std::move(groups))[columns::kAdvantages];
}

// The two groups that the paper begins with: sums (0, 1) and (0, 2) of two scores, which GRPO makes the same of.
TEST(Gdpo, BetterInTwoScoresIsMoreThanBetterInOne) {
  EXPECT_THAT(advantages(params({}, false), {{scored(0, 0), scored(0, 1)}, {scored(0, 0), scored(1, 1)}}),
              Near({-1 / kRoot2, 1 / kRoot2, -kRoot2, kRoot2}));
}

// Their squares are 1/2, 1/2, 2, 2: a sum of 5, over 3.
TEST(Gdpo, SumIsDividedByItsStdOverTheIteration) {
  const NodeHarness<Gdpo> gdpo(params());
  EXPECT_EQ(gdpo.needs().scope, engine::Scope::kIteration);
  const auto out = gdpo.run({{scored(0, 0), scored(0, 1)}, {scored(0, 0), scored(1, 1)}}, {1, 1});
  const double std = std::sqrt(5.0 / 3);
  EXPECT_THAT(out[columns::kAdvantages], Near({-1 / kRoot2 / std, 1 / kRoot2 / std, -kRoot2 / std, kRoot2 / std}));
  EXPECT_NEAR(out.metrics().at("advantage/iteration_std"), std, 1e-9);
}

TEST(Gdpo, AnIterationWithoutSamplesHasNoStd) {
  EXPECT_FALSE(NodeHarness<Gdpo>(params()).run({}, {}).metrics().contains("advantage/iteration_std"));
}

// Scores of 0 and 1000 weigh as much as those of 0 and 1: what a sum would leave of the second.
TEST(Gdpo, ScaleOfAScoreDoesNotMatterAndItsWeightDoes) {
  const std::vector<GroupOf> groups{{scored(0, 1), scored(1000, 0)}};
  EXPECT_THAT(advantages(params({}, false), groups), Near({0, 0}));
  EXPECT_THAT(advantages(params({1, 0.5}, false), groups), Near({-0.5 / kRoot2, 0.5 / kRoot2}));
}

TEST(Gdpo, EpsilonAndVarianceAreThoseOfEachDivision) {
  GdpoParams biased = params({1, 0}, true, 1);
  biased.std = Variance::kBiased;
  EXPECT_THAT(advantages(biased, {{scored(0, 0), scored(2, 0)}}), Near({-0.5 / 1.5, 0.5 / 1.5}));  // 1 / (1 + 1), 0.5 / (0.5 + 1)
}

TEST(Gdpo, GroupOfEqualScoresIsExactlyZeroAndSoIsALoneSample) {
  const auto equal = [] { return scored(0.1f, 0.3f); };
  const auto out = NodeHarness<Gdpo>(params()).run({{equal(), equal(), equal()}, {scored(5, 5)}, {scored(0, 1), scored(1, 1)}});
  EXPECT_THAT(out[columns::kAdvantages], ElementsAre(0, 0, 0, 0, ::testing::Lt(-1), ::testing::Gt(1)));
  EXPECT_NEAR(out.metrics().at("advantage/zero_advantages"), 2.0 / 3, 1e-12);
}

TEST(Gdpo, RecordsHowMuchEachScoreAdds) {
  const auto metrics =
      NodeHarness<Gdpo>(params({1, 3}, false)).run({{scored(0, 0), scored(1, 0)}, {scored(0, 0), scored(0, 1)}}).metrics();
  EXPECT_NEAR(metrics.at("advantage/correct_abs_mean"), 0.5 / kRoot2, 1e-6);
  EXPECT_NEAR(metrics.at("advantage/format_abs_mean"), 1.5 / kRoot2, 1e-6);
}

TEST(Gdpo, MaskedSampleDoesNotCountAndMaskedActionsGetZero) {
  const auto masked = [](float score, std::vector<float> mask) {
    return Sample().value(kCorrect, score).value(kFormat, 0.0f).actions(columns::kMask, std::move(mask));
  };
  EXPECT_THAT(advantages(params({}, false), {{masked(0, {1, 0}), masked(99, {0, 0}), masked(1, {1})}}),
              Near({-1 / kRoot2, 0, 0, 0, 1 / kRoot2}));
  EXPECT_THAT(advantages(params(), {{masked(1, {0})}}), ElementsAre(0));
}

TEST(Gdpo, SameInEveryPacking) {
  std::vector<GroupOf> groups;
  for (int g = 0; g < 9; ++g) {
    const auto score = [&](int n) { return static_cast<float>((g * 7 + n * 5) % 11) / 3; };
    groups.push_back({scored(score(0), score(3), 2), scored(score(1), score(4), 0), scored(score(2), score(6), 3)});
  }
  const NodeHarness<Gdpo> gdpo(params({1, 0.3}));
  const auto together = gdpo.run(groups)[columns::kAdvantages];
  EXPECT_EQ(gdpo.run(groups, std::vector<size_t>(9, 1))[columns::kAdvantages], together);
  EXPECT_EQ(gdpo.run(groups, {2, 3, 4})[columns::kAdvantages], together);
}

TEST(Gdpo, ScoreThatIsNotFiniteIsNamed) {
  const auto failure = message_of<UserError>([] {
    advantages(params(), {{scored(1, 1)}, {scored(1, 1), scored(1, std::nanf(""))}});
  });
  EXPECT_THAT(failure, AllOf(HasSubstr("'format' is nan"), HasSubstr("sample 1 of group 1")));
}

TEST(Gdpo, FullyMaskedSampleDoesNotCountWhateverItsScores) {
  const auto masked = [](float correct, float format, float mask) {
    return scored(correct, format).actions(columns::kMask, {mask});
  };
  const auto out = advantages(params(), {{masked(1, 1, 1), masked(0, std::nanf(""), 0), masked(0, 1, 1)}});
  EXPECT_EQ(out[1], 0);
  EXPECT_GT(out[0], 0);
  EXPECT_EQ(out[0], -out[2]);
}

TEST(Gdpo, RefusesSettingsThatDoNotFit) {
  const auto problems = [](std::vector<std::string> scores, std::vector<double> weights) {
    engine::Array names, numbers;
    for (std::string& score : scores) names.push_back({std::move(score)});
    for (const double weight : weights) numbers.push_back({weight});
    return NodeHarness<Gdpo>::problems({{"scores", {names}}, {"weights", {numbers}}});
  };
  EXPECT_THAT(problems({"a", "b"}, {1}), ElementsAre(HasSubstr("1 weight for 2 scores")));
  EXPECT_THAT(problems({"a", "b"}, {0, 0}), ElementsAre(HasSubstr("every weight is 0")));
  EXPECT_THAT(problems({"a", "b"}, {0, 1}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::gdpo_test
