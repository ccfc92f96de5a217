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
  const CodeProblem problem = parsed(R"({"fn_name": "f", "inputs": [[[1, 2], "x"], "[1, 2]\n\"x\""], "outputs": [[3, 4], 5]})");
  EXPECT_EQ(problem.function, "f");
  EXPECT_EQ(problem.arguments[0], Json::parse(R"([[1, 2], "x"])"));
  EXPECT_EQ(problem.arguments[1], problem.arguments[0]);
  EXPECT_THAT(problem.values[0], ElementsAre(Json::parse("[3, 4]")));
  EXPECT_THAT(problem.values[1], ElementsAre(Json(5)));
}

TEST(CodeProblem, TextIsAcceptedAndWhatItSaysAsJson) {
  const auto values = parsed(R"({"fn_name": "f", "inputs": [1, 2, 3], "outputs": ["100", "[3, 4]", "word"]})").values;
  EXPECT_THAT(values[0], ElementsAre(Json("100"), Json(100)));
  EXPECT_THAT(values[1], ElementsAre(Json("[3, 4]"), Json::parse("[3, 4]")));
  EXPECT_THAT(values[2], ElementsAre(Json("word"), Json("word")));
}

// As APPS has them. Where one list has more elements, lists are what the function returns.
TEST(CodeProblem, ListsOfOneElementAreTakenOutOfTheListWhereAllOutputsAreSuch) {
  const auto wrapped = parsed(R"({"fn_name": "f", "inputs": [1, 2], "outputs": [[3], ["x"]]})").values;
  EXPECT_THAT(wrapped[0], ElementsAre(Json::parse("[3]"), Json(3)));
  EXPECT_THAT(wrapped[1], ElementsAre(Json::parse(R"(["x"])"), Json("x")));
  const auto lists = parsed(R"({"fn_name": "f", "inputs": [1, 2], "outputs": [[3], [0, 1]]})").values;
  EXPECT_THAT(lists[0], ElementsAre(Json::parse("[3]")));
  EXPECT_THAT(lists[1], ElementsAre(Json::parse("[0, 1]")));
}

TEST(CodeProblem, NameThatNoFunctionHasIsRefused) {
  const auto label = [](const std::string& name) { return R"({"inputs": [[1]], "outputs": [2], "fn_name": ")" + name + R"("})"; };
  for (const char* name : {"f; import os", "", "1f", "f()", "a b", "Solution.f"}) {
    EXPECT_THAT(fault(label(name)), HasSubstr("has the fn_name \"" + std::string(name) + "\", which no function can have"));
  }
  EXPECT_EQ(parsed(label("_größe2")).function, "_größe2");
}

TEST(CodeProblem, LabelWithoutTestsIsNamed) {
  EXPECT_THAT(fault("42"), HasSubstr("is not a JSON object"));
  EXPECT_THAT(fault(R"({"tests": []})"), HasSubstr("has no tests"));
  EXPECT_THAT(fault(R"({"inputs": ["1"]})"), HasSubstr("has no tests"));
  EXPECT_THAT(fault(R"({"inputs": ["1"], "outputs": []})"), HasSubstr("1 inputs and 0 outputs"));
  EXPECT_THAT(fault(R"({"tests": [1]})"), HasSubstr("not a text"));
}

}  // namespace
}  // namespace sluice::nodes::code_problem_test
