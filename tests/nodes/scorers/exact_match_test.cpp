#include "nodes/scorers/exact_match.h"

#include <fstream>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/reference_cases.h"

namespace sluice::nodes::exact_match_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

GroupOf group(std::string label, std::initializer_list<const char*> responses) {
  GroupOf made{};
  if (responses.size() == 1) made = GroupOf{Sample().value(columns::kResponse, std::string(*responses.begin()))};
  if (responses.size() == 2) {
    made = GroupOf{Sample().value(columns::kResponse, std::string(responses.begin()[0])),
                   Sample().value(columns::kResponse, std::string(responses.begin()[1]))};
  }
  return made.value(columns::kLabel, std::move(label));
}

ExactMatchParams extracting(std::string extract, std::optional<std::string> label_extract = {},
                            AnswerForm normalize = AnswerForm::kNone) {
  ExactMatchParams params;
  params.extract = std::move(extract);
  params.label_extract = std::move(label_extract);
  params.normalize = normalize;
  return params;
}

float score(const ExactMatchParams& params, const char* response, std::string label) {
  return NodeHarness<ExactMatch>(params).run({group(std::move(label), {response})})[columns::kScore][0];
}

TEST(ExactMatch, BlanksAroundDoNotMatterTheRestDoes) {
  EXPECT_EQ(score({}, "  72\n", "72"), 1);
  EXPECT_EQ(score({}, "72.", "72"), 0);
  EXPECT_EQ(score({}, "", "72"), 0);
}

TEST(ExactMatch, EachGroupHasItsOwnLabel) {
  const auto out = NodeHarness<ExactMatch>().run({group("4", {"4", "5"}), group("5", {"5"})}, {1, 1});
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0, 1));
  EXPECT_NEAR(out.metrics().at("reward/score_mean"), 2.0 / 3, 1e-9);
}

TEST(ExactMatch, LastMatchIsTheAnswer) {
  const ExactMatchParams params = extracting(R"(####\s*\K.+)");
  EXPECT_EQ(score(params, "first #### 3\nno, #### 72", "because\n#### 72"), 1);
  EXPECT_EQ(score(params, "72", "#### 72"), 0);
}

TEST(ExactMatch, CaptureGroupIsTheAnswerWhereThereIsOne) {
  const ExactMatchParams params = extracting(R"(<answer>(.*?)</answer>|####\s*\K.+)", "");
  EXPECT_EQ(score(params, "<answer>3</answer> <answer>72</answer>", "72"), 1);
  EXPECT_EQ(score(params, "#### 72", "72"), 1);  // the group took no part
}

TEST(ExactMatch, LabelCanBeExtractedInAnotherWay) {
  EXPECT_EQ(score(extracting(R"(\\boxed\{\K[^}]*)", ""), R"(so \boxed{72})", "72"), 1);
}

TEST(ExactMatch, NumbersAreEqualHoweverTheyAreWritten) {
  const ExactMatchParams params = extracting("", {}, AnswerForm::kNumber);
  for (const char* response : {"72", "72.0", "$72", "072", "+72", "72.", "72 apples", "7.2e1", "144/2", "72%"}) {
    EXPECT_EQ(score(params, response, "72"), 1) << response;
  }
  for (const char* response : {"", "-72", "7.2", "72 of 80", "seventy-two", "7,2", "720", "x72", "72/0"}) {
    EXPECT_EQ(score(params, response, "72"), 0) << response;
  }
  EXPECT_EQ(score(params, "-$1,234,567.50", "-1234567.5"), 1);
  EXPECT_EQ(score(params, "2/6", "1/3"), 1);
  EXPECT_EQ(score(params, "0.75", "3/4"), 1);
  EXPECT_EQ(score(params, "-0.0", "0"), 1);
  EXPECT_EQ(score(params, "9007199254740993", "9007199254740992"), 0);  // the same double
}

TEST(ExactMatch, TextsAreEqualUpToCaseBlanksAndFinalPunctuation) {
  const ExactMatchParams params = extracting("", {}, AnswerForm::kText);
  EXPECT_EQ(score(params, " New   york. ", "New York"), 1);
  EXPECT_EQ(score(params, "NewYork", "New York"), 0);
}

TEST(ExactMatch, ResponseThatIsNotUtf8HasNoMatch) { EXPECT_EQ(score(extracting(".+"), "\xff 72", "72"), 0); }

// It tries 2^n ways on n letters a with something else at the end.
TEST(ExactMatch, ResponseOnWhichExtractGivesUpScoresNothingAndIsCounted) {
  const std::string too_much = std::string(100, 'a') + "!";
  NodeHarness<ExactMatch> node(extracting("^(a|a)+$", ""));
  node.resources().node = "answer";
  const auto out = node.run({group("a", {"a", too_much.c_str()})});
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0));
  EXPECT_EQ(out.metrics().at("reward/answer/failed_samples"), 1);
}

TEST(ExactMatch, LabelWithoutAnAnswerNamesItsGroup) {
  const NodeHarness<ExactMatch> node(extracting("####.+"));
  try {
    node.run({group("#### 1", {"1"}), group("none", {"1"})});
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("label of group 1, \"none\""));
  }
}

TEST(ExactMatch, GroupWithoutALabelIsRefused) { EXPECT_THROW(score({}, "", ""), UserError); }

TEST(ExactMatch, BrokenPatternIsFoundBeforeTheRun) {
  using Harness = NodeHarness<ExactMatch>;
  EXPECT_THAT(Harness::problems({{"extract", {std::string("(a")}}}), SizeIs(1));
}

TEST(ExactMatch, EveryReferenceAnswerOfGsm8kScoresAgainstItself) {
  const auto path = test_data() / "gsm8k/test.jsonl";
  if (!std::filesystem::exists(path)) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << path << " is missing";
    GTEST_SKIP() << "no test data";
  }
  std::ifstream file(path);
  const NodeHarness<ExactMatch> node(extracting(R"(####\s*\K.+)", {}, AnswerForm::kNumber));
  std::vector<GroupOf> groups;
  for (std::string line; std::getline(file, line);) {
    const std::string answer = parse_json(line, "gsm8k")["answer"];
    groups.push_back(group(answer, {answer.c_str(), "#### 123456"}));
  }
  const auto scores = node.run(groups)[columns::kScore];
  ASSERT_EQ(scores.size(), 2 * 1319u);
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(scores[i], i % 2 == 0 ? 1 : 0) << i;
}

}  // namespace
}  // namespace sluice::nodes::exact_match_test
