#include "nodes/rewards/combine_scores.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::combine_scores_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr engine::Column<float> kExact{"score_exact", engine::Extent::kSample};
constexpr engine::Column<float> kFormat{"score_format", engine::Extent::kSample};

Sample scored(float exact, float format) { return Sample().value(kExact, exact).value(kFormat, format); }

const CombineScoresParams kBoth{{.scores = {"score_exact", "score_format"}}};

TEST(CombineScores, AddsWithWeights) {
  CombineScoresParams params = kBoth;
  params.weights = {1.0, -0.25};
  const auto out = NodeHarness<CombineScores>(params).run({GroupOf{scored(1, 1), scored(0, 1)}, GroupOf{scored(0.5, 0)}});
  EXPECT_THAT(out[columns::kScore], Near({0.75, -0.25, 0.5}));
}

TEST(CombineScores, WeightsAreOneByDefault) {
  EXPECT_THAT(NodeHarness<CombineScores>(kBoth).run(scored(1, 0.5))[columns::kScore], Near({1.5}));
}

TEST(CombineScores, RecordsTheSumUnderItsOwnName) {
  CombineScoresParams params = kBoth;
  params.writes = "total";
  const auto out =
      NodeHarness<CombineScores>(params).run({GroupOf{scored(1, 1), scored(1, 1)}, GroupOf{scored(0, 1), scored(1, 1)}});
  EXPECT_NEAR(out.metrics().at("reward/total_mean"), 1.75, 1e-9);
  EXPECT_NEAR(out.metrics().at("reward/total_zero_variance"), 0.5, 1e-9);
  EXPECT_EQ(out.metrics().size(), 3u);
}

TEST(CombineScores, ScoreThatIsNotFiniteNamesColumnGroupAndSample) {
  for (const float wrong : {std::nanf(""), INFINITY}) {
    try {
      NodeHarness<CombineScores>(kBoth).run({GroupOf{scored(1, 1)}, GroupOf{scored(1, 1), scored(1, wrong)}});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), HasSubstr("column 'score_format' is"));
      EXPECT_THAT(error.what(), HasSubstr("for sample 1 of group 1"));
    }
  }
}

// A scorer that skips leaves the mean of the group's others as the score.
TEST(CombineScores, MaskedSamplesAreNotRecorded) {
  const auto sample = [](float exact, float mask) { return scored(exact, 0).actions(columns::kMask, {mask, mask}); };
  const auto out =
      NodeHarness<CombineScores>(kBoth).run({GroupOf{sample(1, 1), sample(5, 0)}, GroupOf{sample(0, 1), sample(4, 1)}});
  EXPECT_THAT(out[columns::kScore], Near({1, 5, 0, 4}));
  EXPECT_NEAR(out.metrics().at("reward/score_mean"), 5.0 / 3, 1e-9);
  EXPECT_EQ(out.metrics().at("reward/score_zero_variance"), 0);  // of the second group alone
}

// Its score is as real as that of others.
TEST(CombineScores, ResponseWithoutTokensIsRecordedBesideAMask) {
  const auto empty = scored(1, 0).actions(columns::kMask, {}), masked = scored(0, 0).actions(columns::kMask, {0});
  const auto out = NodeHarness<CombineScores>(kBoth).run({GroupOf{empty, masked}});
  EXPECT_EQ(out.metrics().at("reward/score_mean"), 1);
}

TEST(CombineScores, SumBeyondFloat32NamesColumnGroupAndSample) {
  CombineScoresParams params = kBoth;
  params.weights = {1e38, 0};
  EXPECT_THAT(message_of<UserError>([&] {
                NodeHarness<CombineScores>(params).run({GroupOf{scored(1, 0)}, GroupOf{scored(3, 0), scored(-4, 0)}});
              }),
              HasSubstr("column 'score' would be -4e+38 for sample 1 of group 1"));
}

TEST(CombineScores, RefusesSettingsThatDoNotFit) {
  const auto problems = [](std::vector<std::string> scores, std::vector<double> weights, std::string writes = "score") {
    engine::Array names, numbers;
    for (std::string& score : scores) names.push_back({std::move(score)});
    for (const double weight : weights) numbers.push_back({weight});
    return NodeHarness<CombineScores>::problems({{"scores", {names}}, {"weights", {numbers}}, {"writes", {std::move(writes)}}});
  };
  EXPECT_THAT(problems({"a", "b"}, {1}), ElementsAre(HasSubstr("1 weight for 2 scores")));
  EXPECT_THAT(problems({"a", "a"}, {}), ElementsAre(HasSubstr("'a' is named twice")));
  EXPECT_THAT(problems({"a", "b"}, {}, "b"), ElementsAre(HasSubstr("'b' is one of the scores")));
  EXPECT_THAT(problems({"a", "b"}, {0, 0}), ElementsAre(HasSubstr("every weight is 0")));
  EXPECT_THAT(problems({"a", "b"}, {1, 1e39}), ElementsAre(HasSubstr("a weight of 1e+39")));
  EXPECT_THAT(problems({}, {}), ElementsAre(HasSubstr("no score to add")));
  EXPECT_THAT(problems({"a", "b"}, {0, 1}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::combine_scores_test
