#include "base/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::problem_test {
namespace {

using testing::HasSubstr;
using testing::Not;

SourceSpan span(const std::string& text, int line, int column, int length, const std::string& name = "x.toml") {
  return {std::make_shared<SourceText>(SourceText{name, text}), line, column, length};
}

Problem problem(SourceSpan where, std::string message, std::string caret = {}) {
  return {.where = std::move(where), .message = std::move(message), .caret = std::move(caret), .notes = {}, .help = {}};
}

TEST(Problem, IsRenderedInTheOrderAPersonReads) {
  Problem full = problem(span("a\n[nodes.x]\ny = 3\n", 2, 1, 9), "node 'x' is wrong", "because of this");
  full.notes = {"one fact", "another"};
  full.help = "do that";
  EXPECT_EQ(render(full),
            "x.toml:2:1: error: node 'x' is wrong\n"
            "    2 | [nodes.x]\n"
            "      | ^^^^^^^^^ because of this\n"
            "      = one fact\n"
            "      = another\n"
            "      = help: do that\n");
}

TEST(Problem, WithoutAPlaceHasNoExcerpt) { EXPECT_EQ(render(problem({}, "no file")), "error: no file\n"); }

TEST(Problem, OfAWholeFileNamesTheFileOnly) {
  EXPECT_EQ(render(problem(span("a\n", 0, 0, 0), "it is empty", "why")), "x.toml: error: it is empty\n      = why\n");
}

TEST(Problem, WarningsSaySo) {
  Problem warning = problem({}, "odd");
  warning.severity = Severity::kWarning;
  EXPECT_EQ(render(warning), "warning: odd\n");
  EXPECT_FALSE(has_errors({warning}));
  EXPECT_TRUE(has_errors({warning, problem({}, "bad")}));
}

TEST(Problem, CaretsStandUnderTextBehindTabs) {
  EXPECT_THAT(render(problem(span("\ta\t= bc", 1, 6, 2), "m")), HasSubstr("    1 | \ta\t= bc\n      | \t \t  ^^\n"));
}

TEST(Problem, ColumnsCountCodePoints) {
  EXPECT_THAT(render(problem(span("größe = x", 1, 9, 1), "m")),
              HasSubstr("x.toml:1:9: error: m\n    1 | größe = x\n      |         ^\n"));
}

TEST(Problem, WideCharactersTakeTwoCells) {
  EXPECT_THAT(render(problem(span("数学 = 学x", 1, 6, 2), "m")), HasSubstr("    1 | 数学 = 学x\n      |        ^^^\n"));
}

TEST(Problem, CaretsEndWithTheLine) {
  EXPECT_THAT(render(problem(span("abc\ndef", 1, 2, 50), "m")), HasSubstr("    1 | abc\n      |  ^^\n"));
}

TEST(Problem, ACaretMayStandBehindTheLastCharacter) {
  EXPECT_THAT(render(problem(span("abc\r\ndef", 1, 4, 1), "m", "here")), HasSubstr("    1 | abc\n      |    ^ here\n"));
}

TEST(Problem, APlacePastTheTextStillRenders) {
  EXPECT_THAT(render(problem(span("abc", 9, 7, 3), "m")), HasSubstr("    9 | \n      | ^\n"));
}

TEST(Problem, OfALongLineOnlyTheNeighbourhoodIsShown) {
  const std::string text = std::string(5000, 'a') + "WRONG" + std::string(5000, 'b');
  const std::string rendered = render(problem(span(text, 1, 5001, 5), "m", "here"));
  EXPECT_THAT(rendered, HasSubstr("x.toml:1:5001: error: m\n    1 | ...aaa"));
  EXPECT_THAT(rendered, HasSubstr("aWRONGb"));
  EXPECT_THAT(rendered, HasSubstr(" ^^^^^ here\n"));
  EXPECT_LT(rendered.size(), 600u);
  const size_t line = rendered.find("    1 | "), carets = rendered.find("      | ");
  EXPECT_EQ(rendered.find("WRONG") - line, rendered.find("^^^^^") - carets);
}

TEST(Problem, CannotSteerTheTerminal) {
  const std::string rendered = render(problem(span("a\x1b[31m\xff"
                                                   "b",
                                                   1, 1, 1),
                                              "m\x1b[0m"));
  EXPECT_THAT(rendered, Not(HasSubstr("\x1b")));
  EXPECT_THAT(rendered, HasSubstr("error: m\\x1b[0m\n"));
  EXPECT_THAT(rendered, HasSubstr("    1 | a\\x1b[31m\\xffb\n"));
}

TEST(Problem, CaretsStandBelowWhatIsShownOfAControlCharacter) {
  const std::string rendered = render(problem(span("a\x1b wrong", 1, 4, 5), "m"));
  EXPECT_THAT(rendered, HasSubstr("    1 | a\\x1b wrong\n      |       ^^^^^\n"));
}

TEST(Problem, TheNameOfAFileStaysOnItsLine) {
  auto where = span("a", 1, 1, 1);
  where.source = std::make_shared<SourceText>(SourceText{.name = "x\nerror: y\x1b.toml", .text = "a"});
  EXPECT_THAT(render(problem(where, "m")), HasSubstr("x\\nerror: y\\x1b.toml:1:1: error: m\n"));
}

TEST(Problem, ALineEndInWhatItQuotesIsEscapedAndItsOwnLinesStay) {
  Problem found = problem({}, "there is no folder new\nline/x");
  found.notes = {"in a\nb"};
  found.help = "add\n          [budget]\n";
  EXPECT_EQ(render(found), "error: there is no folder new\\nline/x\n      = in a\\nb\n      = help: add\n          [budget]\n\n");
}

TEST(Problems, StandInOrderOfPlaceWithoutDuplicates) {
  const std::string text = "one\ntwo\nthree\n";
  const Problems problems = {problem(span(text, 3, 1, 1), "third"), problem(span(text, 1, 2, 1), "second"),
                             problem(span(text, 1, 1, 1), "first"), problem(span(text, 3, 1, 1), "third")};
  EXPECT_EQ(render(problems),
            "x.toml:1:1: error: first\n    1 | one\n      | ^\n\n"
            "x.toml:1:2: error: second\n    1 | one\n      |  ^\n\n"
            "x.toml:3:1: error: third\n    3 | three\n      | ^\n");
  EXPECT_EQ(render(Problems{}), "");
}

TEST(Problems, AtTheSamePlaceKeepTheirOrder) {
  const std::string rendered =
      render({problem(span("a", 1, 1, 1), "z comes first"), problem(span("a", 1, 1, 1), "a comes second")});
  EXPECT_LT(rendered.find("z comes first"), rendered.find("a comes second"));
}

TEST(UserError, SaysWhatItsProblemsSay) {
  const UserError error("cannot do that", "do this");
  EXPECT_STREQ(error.what(), "error: cannot do that\n      = help: do this\n");
  ASSERT_EQ(error.problems().size(), 1u);
  EXPECT_EQ(error.problems()[0].help, "do this");
}

TEST(Check, ThrowsInternalErrorWithTheConditionAndTheReason) {
  EXPECT_NO_THROW(SLUICE_CHECK(1 + 1 == 2, "arithmetic"));
  try {
    SLUICE_CHECK(1 + 1 == 3, "arithmetic is broken");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("arithmetic is broken (1 + 1 == 3, "));
  }
}

}  // namespace
}  // namespace sluice::problem_test
