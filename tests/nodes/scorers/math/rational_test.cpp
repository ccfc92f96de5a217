#include "nodes/scorers/math/rational.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::nodes::rational_test {
namespace {

Rational decimal(const char* digits, int64_t scale = 0) { return Rational::decimal(digits, scale); }

TEST(Natural, HasAnySize) {
  // From bc: (10^30 - 1)^2
  const Natural nines("999999999999999999999999999999");
  EXPECT_EQ(nines * nines, Natural("999999999999999999999999999998000000000000000000000000000001"));
  EXPECT_EQ(nines + Natural(1), Natural::power_of_ten(30));
  EXPECT_EQ(Natural::power_of_ten(30) - Natural(1), nines);
}

TEST(Natural, IsOrderedByItsValueNotByItsDigits) {
  EXPECT_EQ(Natural("000000000000000007"), Natural(7));
  EXPECT_LT(Natural("999999999"), Natural("1000000000"));
  EXPECT_LT(Natural("1999999999"), Natural("2000000000"));
  EXPECT_TRUE(Natural("000").is_zero());
  EXPECT_EQ(Natural(4294967295u), Natural("4294967295"));
}

TEST(Natural, HasRests) {
  // From bc: 10^30 % 123456789012
  EXPECT_EQ(Natural::power_of_ten(30) % Natural("123456789012"), Natural("62754248128"));
  EXPECT_EQ(Natural(17) % Natural(5), Natural(2));
  EXPECT_TRUE((Natural() % Natural(5)).is_zero());
}

TEST(Rational, MultiplesAreExact) {
  EXPECT_TRUE(is_multiple(decimal("402", 2), decimal("1", 2)));
  EXPECT_FALSE(is_multiple(decimal("4021", 3), decimal("1", 2)));
  EXPECT_TRUE(is_multiple(-decimal("6"), decimal("3")));
  EXPECT_FALSE(is_multiple(decimal("25", 1), decimal("2")));
}

TEST(Rational, SumsOfDecimalsAreExact) {
  EXPECT_EQ(decimal("1", 1) + decimal("2", 1), decimal("3", 1));  // 0.1 + 0.2 = 0.3
  EXPECT_EQ(decimal("1") / decimal("3") + decimal("1") / decimal("6"), decimal("5", 1));
  EXPECT_EQ(decimal("12", -2), decimal("1200"));
}

TEST(Rational, SignsCount) {
  EXPECT_EQ(decimal("2") - decimal("5"), -decimal("3"));
  EXPECT_EQ(-decimal("2") * -decimal("5"), decimal("10"));
  EXPECT_LT(-decimal("5"), decimal("2"));
  EXPECT_LT(-decimal("5"), -decimal("2"));
  EXPECT_EQ(-decimal("0"), decimal("0"));
}

TEST(Rational, ComparesWithoutRounding) {
  EXPECT_LT(decimal("9007199254740992"), decimal("9007199254740993"));  // the same double
  EXPECT_GT(decimal("1") / decimal("3"), decimal("333333333333333333", 18));
}

}  // namespace
}  // namespace sluice::nodes::rational_test
