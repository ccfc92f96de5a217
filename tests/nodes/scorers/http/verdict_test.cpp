#include "nodes/scorers/http/verdict.h"

#include "tests/nodes/node_harness.h"

namespace sluice::nodes::verdict_test {
namespace {

using ::testing::HasSubstr;

double score(const VerdictParams& params, const std::string& reply) {
  const Verdict verdict = VerdictReader(params, "extract").read(reply);
  EXPECT_EQ(verdict.fault, "") << reply;
  return verdict.score;
}
std::string fault(const VerdictParams& params, const std::string& reply) {
  return VerdictReader(params, "extract").read(reply).fault;
}

TEST(Verdict, IsTheLastNumberInDoubleBrackets) {
  EXPECT_EQ(score({}, "At first [[2]], but then: Rating: [[ 7.5 ]]."), 7.5);
  EXPECT_EQ(score({}, "[[-1e2]]"), -100);
  EXPECT_EQ(score({}, "[[+3]]"), 3);
  EXPECT_THAT(fault({}, "[[+-7]]"), HasSubstr("says \"+-7\", which is no number"));
  EXPECT_THAT(fault({}, "I would say 7."), HasSubstr("no match of extract"));
  EXPECT_THAT(fault({}, "[[7/10]]"), HasSubstr("says \"7/10\", which is no number"));
  EXPECT_THAT(fault({}, "[[nan]]"), HasSubstr("no finite number"));
  EXPECT_THAT(fault({}, "[[1e39]]"), HasSubstr("no finite number"));
}

TEST(Verdict, MayBeCutOutByAnyPattern) {
  EXPECT_EQ(score({.extract = R"((\d+)/10)"}, "3/10? No: 8/10"), 8);
  EXPECT_EQ(score({.extract = ""}, " 4\n"), 4);
  EXPECT_THAT(fault({.extract = ""}, "4 of 5"), HasSubstr("no number"));
}

TEST(Verdict, NumberOutOfRangeIsNone) {
  const VerdictParams params{.range = {1, 10}};
  EXPECT_EQ(score(params, "[[10]]"), 10);
  EXPECT_THAT(fault(params, "[[11]]"), HasSubstr("says 11.0, which is not within range"));
}

TEST(Verdict, ChoiceIsAWordWhateverItsCase) {
  const VerdictParams params{.choices = {"right", "partly right", "wrong"}, .choice_scores = {1, 0.5, -1}};
  EXPECT_EQ(score(params, "[[Wrong]]"), -1);
  EXPECT_EQ(score(params, "It is [[\"partly  RIGHT\"]]."), 0.5);
  EXPECT_THAT(fault(params, "[[maybe]]"), HasSubstr("says \"maybe\", which is none of the choices"));
}

// As a judge of mathematics writes them.
TEST(Verdict, JsonMayStandBetweenOtherBraces) {
  const VerdictParams params{.field = "rating"};
  EXPECT_EQ(score(params, R"(The ratio is \frac{1}{2}, so: {"rating": 7})"), 7);
  EXPECT_EQ(score(params, "The set {1,2} is empty.\n```json\n{\"rating\": 6}\n```"), 6);
  EXPECT_EQ(score(params, "{\"rating\": 5}\nSo I gave {student} a 5."), 5);
  EXPECT_EQ(score(params, R"({"rating": 1} at first, then {"rating": 2}, as {"why": "} {"} says)"), 2);
  EXPECT_EQ(score(params, R"({"of": {"rating": 9}, "rating": 3})"), 3);
  EXPECT_THAT(fault(params, "{" + std::string(100000, '{')), HasSubstr("has no JSON object"));
  EXPECT_THAT(fault(params, R"({"grade": 1} {"rating")"), HasSubstr("has no rating"));
}

// A judge that says the rubric again, and one that has said what it judges.
TEST(Verdict, OfACutReplyIsTheOnlyOneInIt) {
  const auto cut = [](const VerdictParams& params, const std::string& reply) {
    return VerdictReader(params, "extract").read_cut(reply);
  };
  const VerdictParams choices{.choices = {"right", "wrong"}, .choice_scores = {1, 0}};
  EXPECT_THAT(cut(choices, "I must end with [[right]] or [[wrong]]. Let me").fault, HasSubstr("cut off at max_new_tokens"));
  EXPECT_THAT(cut(choices, "Let me see.").fault, HasSubstr("cut off"));
  EXPECT_THAT(cut({.extract = ""}, "7").fault, HasSubstr("cut off"));
  EXPECT_EQ(cut(choices, "[[right]] because").fault, "");
  EXPECT_EQ(cut(choices, "[[right]] because").score, 1);
  for (const char* reply :
       {R"({"rating": 4)", R"({"details": {"rating": 1}, "rating": )", R"(As {"rating": 5}? No, {"rating": 6})"})
    EXPECT_THAT(cut({.field = "rating"}, reply).fault, HasSubstr("cut off")) << reply;
  EXPECT_EQ(cut({.field = "rating"}, "{\"rating\": 4} since").score, 4);
}

TEST(Verdict, WhatIsThoughtIsNoneWhereSomethingFollows) {
  EXPECT_THAT(fault({}, "<think>[[1]] perhaps, or [[2]]</think> done"), HasSubstr("no match of extract"));
  EXPECT_EQ(score({}, "<think>[[1]] perhaps</think>\nSo: [[3]]"), 3);
  EXPECT_EQ(score({}, "[[1]] perhaps</think>[[3]]"), 3);  // the template wrote the <think>
  EXPECT_EQ(score({.field = "rating"}, R"(<think>{"rating": 1}</think>{"rating": 4})"), 4);
  EXPECT_EQ(score({}, "<think>[[2]]</think>\n"), 2);
  const VerdictReader reader({}, "extract");
  for (const char* cut : {"<think>[[1]] or", "<think>[[1]]</think>"})
    EXPECT_THAT(reader.read_cut(cut).fault, HasSubstr("cut off"));
  EXPECT_EQ(reader.read_cut("<think>[[1]] or [[2]]</think>[[3]] since").score, 3);
}

TEST(Verdict, JsonThatReadersTakeDifferentlyIsNone) {
  const VerdictParams params{.field = "rating"};
  EXPECT_THAT(fault(params, R"({"rating": 1, "rating": 9, "of": {"rating": 3}})"), HasSubstr("has the key \"rating\" twice"));
  EXPECT_THAT(fault(params, R"({"rating": 1e999})"), HasSubstr("has a number that is out of range"));
  EXPECT_EQ(score(params, R"(It wrote {"a": 1, "a": 2}. {"rating": 4})"), 4);
}

TEST(Verdict, MayBeAFieldOfJson) {
  const VerdictParams params{.field = "rating.overall"};
  EXPECT_EQ(score(params, "```json\n{\"why\": \"it is {short}\", \"rating\": {\"overall\": 3}}\n```"), 3);
  EXPECT_EQ(score(params, R"({"rating": {"overall": "4.5"}})"), 4.5);
  EXPECT_THAT(fault(params, "3"), HasSubstr("has no JSON object"));
  EXPECT_THAT(fault(params, "{\"rating\": {}}"), HasSubstr("has no rating.overall"));
  EXPECT_THAT(fault(params, "{\"rating\": 3}"), HasSubstr("has no rating.overall"));
  EXPECT_THAT(fault(params, "{\"rating\": {\"overall\": [1]}}"), HasSubstr("no number and no text"));
  const VerdictParams choice{.field = "pass", .choices = {"true", "false"}, .choice_scores = {1, 0}};
  EXPECT_EQ(score(choice, "{\"pass\": true}"), 1);
  EXPECT_EQ(score(choice, "{\"pass\": \"False\"}"), 0);
}

}  // namespace
}  // namespace sluice::nodes::verdict_test
