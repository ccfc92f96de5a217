#include "nodes/scorers/math/numeric_match.h"

#include <fstream>

#include "base/error.h"
#include "tests/nodes/reference_cases.h"
#include "tests/nodes/scorers/text_groups.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::numeric_match_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NumericMatchParams place(NumberPlace answer) {
  NumericMatchParams params;
  params.answer = answer;
  return params;
}

float score(const NumericMatchParams& params, const std::string& response, const std::string& label) {
  return score_of<NumericMatch>(params, response, label);
}

TEST(NumericMatch, NumbersAreEqualHoweverTheyAreWritten) {
  for (const char* response :
       {"0.75", "3/4", R"(\boxed{\frac{3}{4}})", "the answer is .750", "6/8 of them", "7.5e-1", "75e-2 kg"}) {
    EXPECT_EQ(score({}, response, "3/4"), 1) << response;
  }
  EXPECT_EQ(score({}, "0.7500000000000000000001", "3/4"), 0);
  EXPECT_EQ(score({}, "9007199254740993", "9007199254740992"), 0);  // the same double
}

TEST(NumericMatch, BoxDecidesWhereThereIsOne) {
  EXPECT_EQ(score({}, R"(\boxed{5}, and 7 more)", "5"), 1);
  EXPECT_EQ(score({}, R"(\boxed{x} is 5)", "5"), 0);
  EXPECT_EQ(score({}, R"(it is 5, so \boxed{5)", "5"), 0);
}

TEST(NumericMatch, HashesDecideWhereANumberFollows) {
  EXPECT_EQ(score({}, "first 7\n#### 5\nwhich has 2 factors", "5"), 1);
  EXPECT_EQ(score({}, "#### Conclusion\nIt is 5.", "5"), 1);
}

TEST(NumericMatch, PlaceCanBeGiven) {
  EXPECT_EQ(score(place(NumberPlace::kHash), "#### 5", "5"), 1);
  EXPECT_EQ(score(place(NumberPlace::kHash), "5", "5"), 0);
  EXPECT_EQ(score(place(NumberPlace::kBoxed), R"(\boxed{5})", "5"), 1);
  EXPECT_EQ(score(place(NumberPlace::kBoxed), "#### 5", "5"), 0);
  EXPECT_EQ(score(place(NumberPlace::kLastNumber), R"(\boxed{5} or 6)", "6"), 1);
}

TEST(NumericMatch, LabelIsANumberOrReadLikeAResponse) {
  for (const char* label : {"5", "- 5 + 10 = 5", R"(so \boxed{5})", "2 + 3 = 5\n#### 5", "5 apples", "the answer: 5."}) {
    EXPECT_EQ(score({}, "5", label), 1) << label;
  }
  EXPECT_EQ(score(place(NumberPlace::kBoxed), R"(\boxed{5})", "5"), 1);
  EXPECT_EQ(score({}, "-5", "- 5"), 1);
}

TEST(NumericMatch, LabelOfWhichSeveralNumbersCouldBeMeantIsRefused) {
  for (const char* label : {"(3,4)", "1 000 000", "100,00", "3!", "\u00b15", "1,5", "12:30", "x > 7", "3 m 20 cm", "3 or 4",
                            R"(\boxed{3 or 4})", "so it is\n#### 3 or 4"}) {
    const std::string said = message_of<UserError>([&] { score({}, "1", label); });
    EXPECT_THAT(said, HasSubstr("holds more than one number, or one that is a part of something else")) << label;
    EXPECT_THAT(said, HasSubstr("or marks it with ####")) << label;
  }
  EXPECT_EQ(score({}, "1.5", "1\u00bd"), 1);
  EXPECT_EQ(score({}, "5,000,000", "5 million"), 1);
}

// What a mathematician says of these.
TEST(NumericMatch, ReadsResponsesAsPeopleDo) {
  const std::vector<std::pair<const char*, const char*>> right = {
      {"-3", "The answer is - 3."}, {"-7", "5 - 12 = - 7"},
      {"-3", "= \u2212 3"},         {"0.5", "\u00bd"},
      {"5000000", "5 million"},     {"1000", R"(\boxed{10^3})"},
      {"1", R"(\boxed{(1)})"},      {"100", R"(\boxed{100\;\text{m}\cdot\text{s}^{-1}})"}};
  for (const auto& [label, response] : right) EXPECT_EQ(score({}, response, label), 1) << response;
  const std::vector<std::pair<const char*, const char*>> wrong = {{"3", "The answer is - 3."},
                                                                  {"3", R"(\boxed{3!})"},
                                                                  {"3", R"(\boxed{3\text{ or }4})"},
                                                                  {"3", "3\u03c0"},
                                                                  {"5", "\u00b15"},
                                                                  {"5", R"(\boxed{\pm 5})"},
                                                                  {"5", "5 million"},
                                                                  {"30", "12:30"}};
  for (const auto& [label, response] : wrong) EXPECT_EQ(score({}, response, label), 0) << response;
}

TEST(NumericMatch, ToleranceIsTheDecimalThatIsWritten) {
  NumericMatchParams params;
  params.tolerance = 0.1;
  EXPECT_EQ(score(params, "72.1", "72"), 1);
  EXPECT_EQ(score(params, "71.9", "72"), 1);
  EXPECT_EQ(score(params, "72.10000000000000001", "72"), 0);
}

TEST(NumericMatch, RelativeToleranceIsAShareOfTheLabel) {
  NumericMatchParams params;
  params.relative_tolerance = 0.01;
  EXPECT_EQ(score(params, "202", "200"), 1);
  EXPECT_EQ(score(params, "-198", "-200"), 1);
  EXPECT_EQ(score(params, "202.01", "200"), 0);
  params.tolerance = 3;  // either is enough
  EXPECT_EQ(score(params, "203", "200"), 1);
}

TEST(NumericMatch, PercentIsItsNumberOrAHundredthOfIt) {
  EXPECT_EQ(score({}, "50%", "50"), 1);
  NumericMatchParams params;
  params.percent = PercentMeaning::kScale;
  EXPECT_EQ(score(params, "50%", "0.5"), 1);
  EXPECT_EQ(score(params, R"(\boxed{50\%})", "1/2"), 1);
  EXPECT_EQ(score(params, "0.5", "50 percent"), 1);
  EXPECT_EQ(score(params, "50", "50%"), 0);
}

TEST(NumericMatch, LabelWithoutANumberNamesItsGroup) {
  try {
    NodeHarness<NumericMatch>().run({labelled("1", "1"), labelled("none", "1")});
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the label of group 1, \"none\", holds no number"));
  }
  EXPECT_THROW(score({}, "1", " "), UserError);
}

TEST(NumericMatch, TellsHowManyAnswered) {
  const auto out =
      NodeHarness<NumericMatch>().run({labelled("1", "1"), labelled("1", "2"), labelled("1", "one"), labelled("1", "?")});
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(out.metrics().at("reward/score_answered"), 0.5);
  EXPECT_EQ(out.metrics().at("reward/score_mean"), 0.25);
}

TEST(NumericMatch, ScoresTheBaselineOnRequest) {
  NumericMatchParams params;
  params.scores = ScoredText::kBaseline;
  GroupOf group{Sample(), Sample()};
  group.value(columns::kBaselineResponse, std::string("5")).value(columns::kLabel, std::string("5"));
  EXPECT_THAT(NodeHarness<NumericMatch>(params).run({group})[columns::kBaselineScore], ElementsAre(1));
}

TEST(NumericMatch, EveryReferenceAnswerOfGsm8kScoresAgainstItself) {
  const auto path = test_data() / "gsm8k/test.jsonl";
  if (!std::filesystem::exists(path)) {
    ASSERT_EQ(std::getenv("CI"), nullptr) << path << " is missing";
    GTEST_SKIP() << "no test data";
  }
  std::ifstream file(path);
  std::vector<GroupOf> groups;
  for (std::string line; std::getline(file, line);) {
    const std::string answer = parse_json(line, "gsm8k")["answer"];
    const std::string number = answer.substr(answer.rfind("#### ") + 5);
    groups.push_back(labelled(number, answer));
    groups.push_back(labelled(answer, "\\boxed{" + number + "}"));
    groups.push_back(labelled(answer, "#### 123456"));
  }
  const auto scores = NodeHarness<NumericMatch>().run(groups)[columns::kScore];
  ASSERT_EQ(scores.size(), 3 * 1319u);
  for (size_t i = 0; i < scores.size(); ++i) EXPECT_EQ(scores[i], i % 3 == 2 ? 0 : 1) << i;
}

}  // namespace
}  // namespace sluice::nodes::numeric_match_test
