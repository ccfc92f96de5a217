#include "nodes/rewards/cosine_reward.h"

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::cosine_reward_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr engine::Column<float> kRawScore{"raw_score", engine::Extent::kSample};

Output run(const CosineRewardParams& params, float score, std::initializer_list<size_t> lengths) {
  std::vector<GroupOf> groups;
  for (const size_t length : lengths) {
    groups.push_back({Sample().value(kRawScore, score).actions(columns::kValues, std::vector<float>(length))});
  }
  return NodeHarness<CosineReward>(params).run(groups);
}

// A third of the way the cosine is 1/2, so three quarters of the difference are left.
TEST(CosineReward, GoesFromTheRewardOfShortSamplesToThatOfLongOnes) {
  const CosineRewardParams params{.max_tokens = 12};
  EXPECT_THAT(run(params, 1, {0, 4, 6, 12, 30})[columns::kScore], Near({1, 0.875, 0.75, 0.5, 0.5}));
  EXPECT_THAT(run(params, 0, {0, 4, 6, 12, 30})[columns::kScore], Near({-1, -0.875, -0.75, -0.5, -0.5}));
}

// Of eddycmu/demystify-long-cot, openrlhf/reward/cosine.py: min + (max - min) / 2 (1 + cos(pi n / max_len)), computed with
// Python.
TEST(CosineReward, HasTheNumbersOfTheFormula) {
  const CosineRewardParams params{
      .max_tokens = 1000, .correct_short = 2, .correct_long = 1, .wrong_short = -10, .wrong_long = 0, .exceeded = -10};
  EXPECT_THAT(run(params, 1, {100, 250, 700, 999})[columns::kScore],
              Near({1.9755282581, 1.8535533906, 1.2061073739, 1.0000024674}));
  EXPECT_THAT(run(params, 0, {100, 250, 700, 999})[columns::kScore],
              Near({-9.7552825815, -8.5355339059, -2.0610737385, -0.0000246740}));
}

TEST(CosineReward, CutOffSamplesHaveARewardOfTheirOwn) {
  const CosineRewardParams params{.max_tokens = 4, .exceeded = -3};
  EXPECT_THAT(run(params, 1, {2, 4, 5})[columns::kScore], Near({0.75, -3, -3}));
  EXPECT_NEAR(run(params, 1, {2, 4, 5}).metrics().at("reward/score_exceeded"), 2.0 / 3, 1e-12);
}

TEST(CosineReward, WhatIsRightIsForLeastScoreToSay) {
  CosineRewardParams params{.max_tokens = 4};
  EXPECT_THAT(run(params, 0.5f, {0})[columns::kScore], ElementsAre(-1));
  params.least_score = 0.5;
  EXPECT_THAT(run(params, 0.5f, {0})[columns::kScore], ElementsAre(1));
  EXPECT_NEAR(run(params, 0.5f, {0}).metrics().at("reward/score_right"), 1, 1e-12);
}

TEST(CosineReward, MaskedSamplesAreNotRecorded) {
  const auto sample = [](float score, std::vector<float> mask) {
    return Sample().value(kRawScore, score).actions(columns::kMask, std::move(mask));
  };
  const auto out = NodeHarness<CosineReward>({.max_tokens = 2})
                       .run({{sample(1, {1, 1}), sample(0, {0, 0}), sample(1, {1, 0}), sample(0, {1})}});
  EXPECT_THAT(out[columns::kScore], Near({0.5, -0.5, 0.5, -0.75}));
  EXPECT_NEAR(out.metrics().at("reward/score_mean"), (0.5 + 0.5 - 0.75) / 3, 1e-9);
  EXPECT_NEAR(out.metrics().at("reward/score_right"), 2.0 / 3, 1e-9);
  EXPECT_NEAR(out.metrics().at("reward/score_exceeded"), 2.0 / 3, 1e-9);
}

TEST(CosineReward, RefusesSettingsThatDoNotFit) {
  const auto problems = [](std::vector<std::pair<std::string, engine::Value>> keys) {
    keys.push_back({"max_tokens", {int64_t{10}}});
    return NodeHarness<CosineReward>::problems(std::move(keys));
  };
  EXPECT_THAT(problems({}), IsEmpty());
  EXPECT_THAT(problems({{"reads", {std::string("score")}}}), ElementsAre(HasSubstr("the column that is read")));
  EXPECT_THAT(problems({{"exceeded", {-1e39}}}), ElementsAre(HasSubstr("exceeded must be a number from -1e+38 to 1e+38")));
  EXPECT_THAT(problems({{"wrong_long", {0.5}}}), ElementsAre(HasSubstr("as much reward as a right one")));
}

}  // namespace
}  // namespace sluice::nodes::cosine_reward_test
