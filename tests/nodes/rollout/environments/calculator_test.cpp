#include "nodes/rollout/environments/calculator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::nodes::calculator_test {
namespace {

Reply reply_of(const CalculatorParams& params, const std::string& last) {
  return Calculator(params).reply({.prompt = {}, .label = {}, .transcript = last, .last = last});
}

std::string answer_of(const CalculatorParams& params, const std::string& last) {
  const Reply reply = reply_of(params, last);
  EXPECT_FALSE(reply.done);
  return reply.text;
}

TEST(Calculator, RepliesWithTheValueOfTheLastExpression) {
  EXPECT_EQ(answer_of({}, "so <calc>12*30</calc>"), "360");
  EXPECT_EQ(answer_of({}, "<calc>1+1</calc> no: <calc>1+2</calc>"), "3");
  EXPECT_EQ(answer_of({.open = "(", .close = ")"}, "(345+678)"), "1023");
  EXPECT_EQ(answer_of({.prefix = " = ", .suffix = "\n"}, "<calc>2-5</calc>"), " = -3\n");
}

TEST(Calculator, WithoutAnOpeningTheExpressionIsAllOfArithmeticAtTheEnd) {
  const CalculatorParams params{.open = "", .close = "="};
  EXPECT_EQ(answer_of(params, "each has 12, so 12*(3+4)="), "84");
  EXPECT_EQ(answer_of(params, "12*30 ="), "360");
  EXPECT_EQ(answer_of(params, "x="), "error");
}

TEST(Calculator, WhatItCannotEvaluateIsAnError) {
  EXPECT_EQ(answer_of({}, "<calc>two</calc>"), "error");
  EXPECT_EQ(answer_of({}, "7/2</calc>"), "error");
  EXPECT_EQ(answer_of({.prefix = "="}, "<calc></calc>"), "=error");
}

TEST(Calculator, ATurnWithoutACallIsTheAnswer) {
  EXPECT_TRUE(reply_of({}, "360").done);
  EXPECT_TRUE(reply_of({}, "<calc>12").done);
  EXPECT_FALSE(reply_of({}, "360").reward.has_value());
}

TEST(Calculator, ItsCloseEndsATurn) { EXPECT_THAT(Calculator({.close = "]"}).turn_ends(), ::testing::ElementsAre("]")); }

}  // namespace
}  // namespace sluice::nodes::calculator_test
