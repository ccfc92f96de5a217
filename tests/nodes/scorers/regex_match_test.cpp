#include "nodes/scorers/regex_match.h"

#include "base/error.h"
#include "tests/nodes/scorers/text_groups.h"

namespace sluice::nodes::regex_match_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

float score(const std::string& pattern, const std::string& response, MatchExtent match = MatchExtent::kSearch, bool dot = false) {
  RegexMatchParams params;
  params.pattern = pattern, params.match = match, params.dot_matches_newline = dot;
  return score_of<RegexMatch>(params, response);
}

TEST(RegexMatch, AnyPartOfTheResponseMayMatch) {
  EXPECT_EQ(score(R"(####\s*\d)", "so\n#### 5 it is"), 1);
  EXPECT_EQ(score(R"(####\s*\d)", "5"), 0);
}

TEST(RegexMatch, WholeResponseMustMatchOnRequest) {
  EXPECT_EQ(score("a|ab", "ab", MatchExtent::kWhole), 1);
  EXPECT_EQ(score("a|ab", "abc", MatchExtent::kWhole), 0);
  EXPECT_EQ(score("a", "a\n", MatchExtent::kWhole), 0);
}

TEST(RegexMatch, DotMatchesNewlinesOnRequest) {
  const std::string pattern = R"(<think>.*</think>\s*<answer>.*</answer>)";
  const std::string response = "<think>two\nlines</think>\n<answer>5</answer>";
  EXPECT_EQ(score(pattern, response, MatchExtent::kWhole, true), 1);
  EXPECT_EQ(score(pattern, response, MatchExtent::kWhole, false), 0);
}

TEST(RegexMatch, EmptyMatchIsAMatch) { EXPECT_EQ(score("x*", ""), 1); }

TEST(RegexMatch, ResponseThatIsNotUtf8DoesNotMatch) { EXPECT_EQ(score(".", "a\xff"), 0); }

// It tries 2^n ways on n letters a with something else at the end.
constexpr const char* kExponential = "^(a|a)+$";
const std::string kTooMuch = std::string(100, 'a') + "!";

TEST(RegexMatch, ResponseOnWhichThePatternGivesUpScoresNothingAndIsCounted) {
  RegexMatchParams params;
  params.pattern = kExponential;
  NodeHarness<RegexMatch> node(params);
  node.resources().node = "format";
  ::testing::internal::CaptureStderr();
  const auto out = node.run({labelled("", "aa"), labelled("", kTooMuch)});
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      HasSubstr("node 'format', iteration 0: 1 sample of 2 could not be scored, the first of them sample 0 of group 1, \"" +
                std::string(80, 'a') + "...\""));
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 0));
  EXPECT_EQ(out.metrics().at("reward/format/failed_samples"), 1);
}

TEST(RegexMatch, SkippedResponseIsMasked) {
  RegexMatchParams params;
  params.pattern = kExponential;
  params.on_error = OnError::kSkip;
  const auto response = [](const std::string& text, size_t actions) {
    Sample sample;
    return sample.actions(columns::kValues, std::vector<float>(actions)).value(columns::kResponse, text);
  };
  const auto out = NodeHarness<RegexMatch>(params).run({GroupOf{response("a", 1), response(kTooMuch, 2), response("aa", 1)}});
  EXPECT_THAT(out[columns::kScore], ElementsAre(1, 1, 1));
  EXPECT_THAT(out[columns::kMask], ElementsAre(1, 0, 0, 1));
}

// What its group's samples would have been compared with is not known.
TEST(RegexMatch, OfASkippedBaselineTheWholeGroupIsMasked) {
  RegexMatchParams params;
  params.pattern = kExponential;
  params.on_error = OnError::kSkip;
  params.scores = ScoredText::kBaseline;
  const auto group = [](const std::string& baseline) {
    Sample sample;
    sample.actions(columns::kValues, std::vector<float>(1));
    GroupOf group{sample, sample};
    group.value(columns::kBaselineResponse, baseline);
    return group;
  };
  EXPECT_THAT(NodeHarness<RegexMatch>(params).run({group("a"), group(kTooMuch)})[columns::kMask], ElementsAre(1, 1, 0, 0));
}

TEST(RegexMatch, FailureNamesSampleAndText) {
  RegexMatchParams params;
  params.pattern = kExponential;
  params.on_error = OnError::kFail;
  NodeHarness<RegexMatch> node(params);
  node.resources().node = "format";
  try {
    node.run({labelled("", "a"), labelled("", kTooMuch)});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("node 'format', pattern: the regular expression gave up"),
                                    HasSubstr("sample 0 of group 1, \"" + std::string(80, 'a') + "...\"")));
  }
}

TEST(RegexMatch, BrokenOrEmptyPatternIsFoundBeforeTheRun) {
  const auto problems = &NodeHarness<RegexMatch>::problems;
  EXPECT_THAT(problems({{"pattern", {std::string("(a")}}}), ElementsAre(HasSubstr("not valid")));
  EXPECT_THAT(problems({{"pattern", {std::string("a)(b")}}}), ElementsAre(HasSubstr("not valid")));
  EXPECT_THAT(problems({{"pattern", {std::string()}}}), ElementsAre(HasSubstr("pattern must be a string")));
}

TEST(RegexMatch, NewlineSwitchNeedsADot) {
  EXPECT_THAT(NodeHarness<RegexMatch>::problems({{"pattern", {std::string("a")}}, {"dot_matches_newline", {true}}}),
              ElementsAre(HasSubstr("no effect")));
}

}  // namespace
}  // namespace sluice::nodes::regex_match_test
