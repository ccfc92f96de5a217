#include "nodes/scorers/code/code_answers.h"

#include <gtest/gtest.h>

#include "nodes/scorers/exact_json.h"

namespace sluice::nodes::code_answers_test {
namespace {

bool same(const std::string& returned, const std::string& expected) {
  return same_json(exact_json(returned), exact_json(expected));
}

TEST(SameOutput, BlanksAtEndsDoNotMatter) {
  EXPECT_TRUE(same_output("1 2 \n3\n\n", "1 2\n3"));
  EXPECT_TRUE(same_output("1\r\n2\r\n", "1\n2"));
  EXPECT_TRUE(same_output("", "\n"));
}

TEST(SameOutput, LinesAndWordsDo) {
  EXPECT_FALSE(same_output("1 2 3", "1 2\n3"));
  EXPECT_FALSE(same_output("1\n\n2", "1\n2"));
  EXPECT_FALSE(same_output("yes", "Yes"));
  EXPECT_FALSE(same_output("12", "1 2"));
  EXPECT_FALSE(same_output("", "0"));
}

TEST(SameOutput, DecimalsMayDifferALittleIntegersMayNot) {
  EXPECT_TRUE(same_output("0.333333", "0.33333333"));
  EXPECT_TRUE(same_output("2", "2.0"));
  EXPECT_TRUE(same_output("1e3", "1000.0"));
  EXPECT_FALSE(same_output("0.334", "0.3333"));
  EXPECT_FALSE(same_output("10000001", "10000000"));
  EXPECT_FALSE(same_output("nan", "1.0"));
}

TEST(SameJson, KindsAreNotMixed) {
  EXPECT_TRUE(same("[1, 2]", "[1, 2]"));
  EXPECT_FALSE(same("[1]", "1"));
  EXPECT_FALSE(same("1", "[1]"));
  EXPECT_FALSE(same("0", "[0, 1]"));
  EXPECT_FALSE(same("\"1\"", "1"));
  EXPECT_FALSE(same("true", "1"));
  EXPECT_FALSE(same("[1, 2]", "[2, 1]"));
}

TEST(SameJson, IntegersAreExactWhateverTheirSize) {
  EXPECT_FALSE(same("9007199254740993", "9007199254740992"));
  EXPECT_TRUE(same("1000000000000000000000000000000", "1000000000000000000000000000000"));
  EXPECT_FALSE(same("1000000000000000000000000000001", "1000000000000000000000000000000"));
  EXPECT_FALSE(same("\"18446744073709551616\"", "18446744073709551616"));
}

TEST(SameJson, FloatsMayDifferALittle) {
  EXPECT_TRUE(same("0.30000000000000004", "0.3"));
  EXPECT_TRUE(same("{\"a\": [2.0]}", "{\"a\": [2]}"));
  EXPECT_TRUE(same("1e20", "100000000000000000000"));
  EXPECT_FALSE(same("0.334", "0.3333"));
}

TEST(SameJson, MembersHaveNoOrder) {
  EXPECT_TRUE(same(R"({"a": 1, "b": 2})", R"({"b": 2, "a": 1})"));
  EXPECT_FALSE(same(R"({"a": 1})", R"({"a": 1, "b": 2})"));
  EXPECT_FALSE(same(R"({"a": 1, "c": 2})", R"({"a": 1, "b": 2})"));
}

TEST(SameValue, IsOneOfThoseThatAreAccepted) {
  EXPECT_TRUE(same_value(Json(3), {Json::parse("[3]"), Json(3)}));
  EXPECT_FALSE(same_value(Json(4), {Json::parse("[3]"), Json(3)}));
}

}  // namespace
}  // namespace sluice::nodes::code_answers_test
