#include "nodes/rollout/environments/arithmetic.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::nodes::arithmetic_test {
namespace {

TEST(Arithmetic, FollowsTheRulesOfPrecedence) {
  EXPECT_EQ(evaluate("345+678"), 1023);
  EXPECT_EQ(evaluate("2+3*4-1"), 13);
  EXPECT_EQ(evaluate("20-3-4"), 13);
  EXPECT_EQ(evaluate("100/10/5"), 2);
  EXPECT_EQ(evaluate("(2 + 3) * -(4 - 6)"), 10);
  EXPECT_EQ(evaluate(" 7 "), 7);
  EXPECT_EQ(evaluate("-3+-2"), -5);
}

TEST(Arithmetic, WhatIsNoExpressionHasNoValue) {
  for (const char* text : {"", " ", "2+", "*2", "2 3", "(2", "2)", "()", "2.5", "x", "2+3=", "1e3"}) {
    EXPECT_EQ(evaluate(text), std::nullopt) << text;
  }
}

TEST(Arithmetic, AQuotientMustBeWhole) {
  EXPECT_EQ(evaluate("12/4"), 3);
  EXPECT_EQ(evaluate("-12/4"), -3);
  EXPECT_EQ(evaluate("12/5"), std::nullopt);
  EXPECT_EQ(evaluate("12/0"), std::nullopt);
  EXPECT_EQ(evaluate("12/(3-3)"), std::nullopt);
}

TEST(Arithmetic, WhatDoesNotFitHasNoValue) {
  EXPECT_EQ(evaluate("9223372036854775807"), 9223372036854775807);
  EXPECT_EQ(evaluate("9223372036854775808"), std::nullopt);
  EXPECT_EQ(evaluate("9223372036854775807+1"), std::nullopt);
  EXPECT_EQ(evaluate("4294967296*4294967296"), std::nullopt);
  EXPECT_EQ(evaluate("(0-9223372036854775807-1)/-1"), std::nullopt);
  EXPECT_EQ(evaluate("-(0-9223372036854775807-1)"), std::nullopt);
}

TEST(Arithmetic, DeepNestingIsRefusedAndDoesNotOverflowTheStack) {
  EXPECT_EQ(evaluate(std::string(50, '(') + "1" + std::string(50, ')')), 1);
  EXPECT_EQ(evaluate(std::string(1 << 20, '(')), std::nullopt);
  EXPECT_EQ(evaluate(std::string(1 << 20, '-') + "1"), std::nullopt);
}

}  // namespace
}  // namespace sluice::nodes::arithmetic_test
