#include "nodes/sinks/evaluate_samples.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes::evaluate_samples_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

Sample sample(const char* response, float score) {
  return Sample().value(columns::kResponse, std::string(response)).value(columns::kScore, score);
}

std::map<std::string, double> metrics_of(EvaluateSamplesParams params, std::vector<GroupOf> groups) {
  return NodeHarness<EvaluateSamples>(std::move(params)).run(std::move(groups)).metrics();
}

// 1 - C(n - c, k) / C(n, k), counted by hand.
TEST(PassAt, IsTheChanceOfARightOneAmongThoseDrawn) {
  EXPECT_NEAR(pass_at(4, 1, 1), 1.0 / 4, 1e-12);
  EXPECT_NEAR(pass_at(4, 1, 2), 1 - 3.0 / 6, 1e-12);
  EXPECT_NEAR(pass_at(5, 2, 2), 1 - 3.0 / 10, 1e-12);
  EXPECT_NEAR(pass_at(10, 3, 4), 1 - 35.0 / 210, 1e-12);
  EXPECT_EQ(pass_at(5, 0, 5), 0);
  EXPECT_EQ(pass_at(5, 1, 5), 1);
  EXPECT_EQ(pass_at(5, 4, 2), 1);
}

TEST(EvaluateSamples, ScoreThatIsNotFiniteIsNamed) {
  EXPECT_THAT(
      [] {
        metrics_of({.k = {1}}, {{sample("1", 1), sample("2", std::nanf(""))}});
      },
      ThrowsMessage<UserError>(HasSubstr("'score' is nan for sample 1 of group 0")));
}

TEST(EvaluateSamples, PassAtKIsTheMeanOverTheGroups) {
  const auto found = metrics_of({.k = {1, 2}}, {{sample("1", 1), sample("2", 0), sample("3", 0), sample("4", 0)},
                                                {sample("1", 1), sample("2", 1), sample("3", 0), sample("4", 0)}});
  EXPECT_NEAR(found.at("reward/pass_at_1"), (0.25 + 0.5) / 2, 1e-12);
  EXPECT_NEAR(found.at("reward/pass_at_2"), (0.5 + (1 - 1.0 / 6)) / 2, 1e-12);
}

TEST(EvaluateSamples, AScoreReachesTheBoundThatIsWrittenLikeIt) {
  EXPECT_EQ(metrics_of({.k = {1}, .least_score = 0.7}, {{sample("1", 0.7f)}}).at("reward/pass_at_1"), 1);
}

// A group of which too few are left says nothing.
TEST(EvaluateSamples, MaskedSamplesHaveNoPart) {
  const auto masked = [](const char* response, float score) {
    return sample(response, score).actions(columns::kMask, std::vector<float>{0, 0});
  };
  const auto kept = [](const char* response, float score) {
    return sample(response, score).actions(columns::kMask, std::vector<float>{1, 0});
  };
  const auto found =
      metrics_of({.k = {1, 2}}, {{masked("1", 1), kept("2", 0), kept("3", 1)}, {masked("1", 0), kept("2", 1), masked("3", 0)}});
  EXPECT_NEAR(found.at("reward/pass_at_1"), (0.5 + 1) / 2, 1e-12);
  EXPECT_NEAR(found.at("reward/pass_at_2"), 1, 1e-12);
}

TEST(EvaluateSamples, TheCommonestAnswerDecidesTheMajority) {
  EXPECT_EQ(metrics_of({.k = {3}}, {{sample("7", 1), sample(" 7\n", 1), sample("8", 0)}}).at("reward/maj_at_3"), 1);
  EXPECT_EQ(metrics_of({.k = {3}}, {{sample("7", 1), sample("8", 0), sample("8", 0)}}).at("reward/maj_at_3"), 0);
}

TEST(EvaluateSamples, EquallyCommonAnswersShareTheMajority) {
  EXPECT_EQ(metrics_of({.k = {2}}, {{sample("7", 1), sample("8", 0)}}).at("reward/maj_at_2"), 0.5);
}

TEST(EvaluateSamples, MajorityOfFewerIsTheMeanOverRunsOfThem) {
  const auto found = metrics_of({.k = {2}}, {{sample("7", 1), sample("7", 1), sample("8", 0), sample("8", 0), sample("9", 0)}});
  EXPECT_EQ(found.at("reward/maj_at_2"), 0.5);
}

TEST(EvaluateSamples, AResponseOnWhichExtractGivesUpDoesNotVoteAndIsCounted) {
  const std::string too_much = std::string(100, 'a') + "!";  // 2^100 ways
  const auto found = metrics_of({.k = {2}, .extract = "^(a|a)+$"}, {{sample("a", 1), sample(too_much.c_str(), 0)}});
  EXPECT_EQ(found.at("reward/maj_at_2"), 1);
  EXPECT_EQ(found.at("reward/answers_not_read"), 1);
}

TEST(EvaluateSamples, AnswersVoteByTheirNormalForm) {
  const auto found = metrics_of({.k = {3}, .extract = R"(####\s*(.+))", .normalize = AnswerForm::kNumber},
                                {{sample("so #### 1,000", 1), sample("#### 1000.0", 1), sample("#### 7", 0)}});
  EXPECT_EQ(found.at("reward/maj_at_3"), 1);
}

TEST(EvaluateSamples, AResponseWithoutAnswerDoesNotVote) {
  const EvaluateSamplesParams params{.k = {3}, .extract = "#(.+)"};
  EXPECT_EQ(metrics_of(params, {{sample("none", 0), sample("none", 0), sample("#7", 1)}}).at("reward/maj_at_3"), 1);
  EXPECT_EQ(metrics_of(params, {{sample("none", 0), sample("none", 0), sample("7", 0)}}).at("reward/maj_at_3"), 0);
}

TEST(EvaluateSamples, FromLeastScoreOnASampleIsRight) {
  EXPECT_EQ(metrics_of({.k = {1}, .least_score = 0.5}, {{sample("7", 0.5f), sample("8", 0.4f)}}).at("reward/pass_at_1"), 0.5);
}

TEST(EvaluateSamples, AGroupWithFewerSamplesIsAnError) {
  EXPECT_THAT([] { metrics_of({.k = {4}}, {{sample("7", 1)}}); },
              ThrowsMessage<UserError>(HasSubstr("group 0 has 1 sample, k names 4")));
}

TEST(EvaluateSamples, KHoldsNumbersOfSamples) {
  const auto problems = [](std::vector<engine::Value> k) { return NodeHarness<EvaluateSamples>::problems({{"k", {.data = k}}}); };
  EXPECT_THAT(problems({{.data = 1.5}}), ElementsAre(HasSubstr("no number of samples")));
  EXPECT_THAT(problems({{.data = int64_t{0}}}), ElementsAre(HasSubstr("no number of samples")));
  EXPECT_THAT(problems({}), ElementsAre(HasSubstr("k is empty")));
  EXPECT_THAT(problems({{.data = int64_t{4}}}), IsEmpty());
}

}  // namespace
}  // namespace sluice::nodes::evaluate_samples_test
