#include "nodes/scorers/code/code_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::code_problem_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kAll = 1000;

CodeProblem parsed(const std::string& label, size_t most = kAll) { return parse_code_problem(label, most); }
std::string fault(const std::string& label) {
  return message_of<UserError>([&] { parsed(label); });
}

TEST(CodeProblem, StatementsAreTests) {
  EXPECT_THAT(parsed(R"({"tests": ["assert f(1) == 2", "assert f(2) == 3"]})").statements,
              ElementsAre("assert f(1) == 2", "assert f(2) == 3"));
  EXPECT_EQ(parsed(R"({"tests": ["a", "b", "c"]})", 2).tests(), 2u);
}

TEST(CodeProblem, ProgramsReadAndWriteTextsOrListsOfLines) {
  const CodeProblem problem = parsed(R"({"inputs": ["3 4\n", ["1", "2"]], "outputs": ["7\n", 3]})");
  EXPECT_TRUE(problem.of_program());
  EXPECT_THAT(problem.inputs, ElementsAre("3 4\n", "1\n2"));
  EXPECT_THAT(problem.outputs, ElementsAre("7\n", "3"));
}

TEST(CodeProblem, FunctionsTakeListsOrJsonLines) {
  const CodeProblem problem = parsed(R"({"fn_name": "f", "inputs": [[[1, 2], "x"], "[1, 2]\n\"x\""], "outputs": ["[3]", [3]]})");
  EXPECT_EQ(problem.function, "f");
  EXPECT_EQ(problem.arguments[0], Json::parse(R"([[1, 2], "x"])"));
  EXPECT_EQ(problem.arguments[1], problem.arguments[0]);
  EXPECT_EQ(problem.values[0], problem.values[1]);
}

TEST(CodeProblem, LabelWithoutTestsIsNamed) {
  EXPECT_THAT(fault("42"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(fault(R"({"tests": []})"), HasSubstr("has no tests"));
  EXPECT_THAT(fault(R"({"inputs": ["1"]})"), HasSubstr("has no tests"));
  EXPECT_THAT(fault(R"({"inputs": ["1"], "outputs": []})"), HasSubstr("1 inputs and 0 outputs"));
  EXPECT_THAT(fault(R"({"tests": [1]})"), HasSubstr("not a text"));
}

TEST(CodeOf, LastPythonBlockIsTheCode) {
  EXPECT_EQ(code_of("first\n```python\na = 1\n```\nbetter:\n```python\na = 2\n```\nrun it:\n```sh\npython a.py\n```\n"),
            "a = 2\n");
}

TEST(CodeOf, AnyBlockWillDoWhereNoneIsMarked) {
  EXPECT_EQ(code_of("so\n```\na = 1\n```\n"), "a = 1\n");
  EXPECT_EQ(code_of("so\n```rust\nlet a;\n```\nand\n```\na = 2\n```"), "a = 2\n");
}

TEST(CodeOf, BlockMayLackItsEnd) { EXPECT_EQ(code_of("```python\nfor i in x:\n  pri"), "for i in x:\n  pri"); }

TEST(CodeOf, EmptyBlockIsNoCode) { EXPECT_EQ(code_of("```python\n```\n"), ""); }

TEST(CodeOf, ResponseWithoutFencesIsCodeAsAWhole) { EXPECT_EQ(code_of("print(1)\n"), "print(1)\n"); }

TEST(CodeOf, FencesInsideALineEndNothing) { EXPECT_EQ(code_of("```python\ns = '```'\n```"), "s = '```'\n"); }

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

TEST(SameValue, IsTheSameJsonOrTheFirstOfAList) {
  EXPECT_TRUE(same_value(Json::parse("[1, 2]"), Json::parse("[1, 2]")));
  EXPECT_TRUE(same_value(Json(3), Json::parse("[3]")));
  EXPECT_TRUE(same_value(Json::parse("1.0"), Json(1)));
  EXPECT_FALSE(same_value(Json::parse("[1]"), Json(1)));
  EXPECT_FALSE(same_value(Json("1"), Json(1)));
}

}  // namespace
}  // namespace sluice::nodes::code_problem_test
