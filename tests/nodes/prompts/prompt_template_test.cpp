#include "nodes/prompts/prompt_template.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::prompt_template_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string filled(const std::string& text, const std::vector<std::string>& values) { return PromptTemplate(text).fill(values); }

std::string error(const std::string& text) {
  return message_of<UserError>([&] { PromptTemplate{text}; });
}

TEST(PromptTemplate, PutsFieldsIntoTheirPlaces) {
  EXPECT_EQ(filled("Q: {question}\nHint: {meta.hint}.", {"1+1", "two"}), "Q: 1+1\nHint: two.");
  EXPECT_EQ(filled("{a}{b}{ a }", {"1", "2"}), "121");
  EXPECT_THAT(PromptTemplate("{b} {a} {b}").fields(), ElementsAre("b", "a"));
}

TEST(PromptTemplate, DoubledBracesAreBraces) { EXPECT_EQ(filled("{{\"x\": {x}}}", {"1"}), "{\"x\": 1}"); }

TEST(PromptTemplate, WhatAFieldHoldsIsNotFilledAgain) { EXPECT_EQ(filled("{a}{b}", {"{b}", "}}"}), "{b}}}"); }

TEST(PromptTemplate, RefusesABraceWithoutItsOther) {
  EXPECT_THAT(error("a {b"), HasSubstr("prompt_template has a { without its }"));
  EXPECT_THAT(error("a b}"), HasSubstr("prompt_template has a } without its {"));
  EXPECT_THAT(error("a {} b"), HasSubstr("prompt_template has a place without a name: \"{}\""));
  EXPECT_THAT(error("a { b {c}"), HasSubstr("place without a name"));
}

}  // namespace
}  // namespace sluice::nodes::prompt_template_test
