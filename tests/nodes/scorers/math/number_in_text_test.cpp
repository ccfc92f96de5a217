#include "nodes/scorers/math/number_in_text.h"

#include <gtest/gtest.h>

#include <string>

#include "nodes/scorers/math/math_text.h"

namespace sluice::nodes::number_in_text_test {
namespace {

Rational number(const char* digits, int64_t scale = 0) { return Rational::decimal(digits, scale); }
Rational ratio(const char* above, const char* below) { return number(above) / number(below); }

void expect(const std::optional<NumberInText>& found, const std::optional<Rational>& expected, const std::string& text) {
  ASSERT_EQ(found.has_value(), expected.has_value()) << text;
  EXPECT_TRUE(!found || found->value == *expected) << text;
}

void expect_last(const std::string& text, const std::optional<Rational>& expected) {
  expect(last_number(plain_math(text)), expected, text);
}

void expect_whole(const std::string& text, const std::optional<Rational>& expected) {
  expect(whole_number(plain_math(text)), expected, text);
}

TEST(LastNumber, IsTheLastOneOfASentence) {
  expect_last("6 apples and 7 pears make 13.", number("13"));
  expect_last("She pays $1,234.50 in total.", number("123450", 2));
  expect_last("no number here", std::nullopt);
  expect_last("", std::nullopt);
  expect_last("It is **72** clips", number("72"));
  expect_last("答案是72。", number("72"));
}

TEST(LastNumber, UnderstandsSigns) {
  expect_last("x = -5", -number("5"));
  expect_last("x = \u22125", -number("5"));
  expect_last("-$5", -number("5"));
  expect_last("it is $-5", -number("5"));
  expect_last("(-5)", -number("5"));
  expect_last("+5", number("5"));
}

TEST(LastNumber, MinusThatSubtractsIsNoSign) {
  expect_last("16-3", number("3"));
  expect_last("16 - 3", number("3"));
  expect_last("pages 10-15", number("15"));
  expect_last("(a)-3", number("3"));
  expect_last("$16-$3", number("3"));
}

TEST(LastNumber, MinusWithABlankIsASignWhereNothingIsThatItSubtractsFrom) {
  for (const char* text :
       {"The answer is - 3.", "x = - 3", "$- 3$", "5 - 6 = - 3", "= \u2212 3", "- 3", "(- 3)", "**Answer:** - 3", "x =\n- 3",
        "it equals - $3", R"(x \to - 3)", "x \u2264 - 3", "2 * - 3", "y^2, - 3"}) {
    expect_last(text, -number("3"));
  }
  for (const char* text :
       {"16 - 3", "x - 3", "$5$ - 3", "**5** - 3", "5% - 3", R"(2\pi - 3)", "apples:\n- 3", "the total - 3 apples"}) {
    expect_last(text, number("3"));
  }
}

TEST(LastNumber, ScaleWordsAreAPartOfIt) {
  expect_last("5 million", number("5000000"));
  expect_last("about $1.5 Billion in all", number("1500000000"));
  expect_last(R"(2\text{ hundred thousand} people)", number("200000"));
  expect_last("5 millionaires", number("5"));
}

TEST(LastNumber, UnderstandsSignsOfUnicode) {
  expect_last("\u00bd", ratio("1", "2"));
  expect_last("1\u00bd cups", ratio("3", "2"));
  expect_last("7, then 3\u03c0", number("7"));
  expect_last("7, then \u00b15", number("7"));
  expect_last("7, then \u221a5", number("7"));
}

TEST(LastNumber, UnderstandsFractionsAndMixedNumbers) {
  expect_last("3/4", ratio("3", "4"));
  expect_last(R"(so $\frac{3}{4}$)", ratio("3", "4"));
  expect_last(R"(so $-\dfrac{3}{4}$)", -ratio("3", "4"));
  expect_last(R"(\frac{-3}{4})", -ratio("3", "4"));
  expect_last(R"(\tfrac34)", ratio("3", "4"));
  expect_last("2 1/3", ratio("7", "3"));
  expect_last(R"(2\frac{1}{3} cups)", ratio("7", "3"));
  expect_last("-2 1/3", -ratio("7", "3"));
  expect_last("in 2 5/3", ratio("5", "3"));  // no proper fraction: two numbers
}

TEST(LastNumber, UnderstandsExponents) {
  expect_last("5e3", number("5000"));
  expect_last("1.5E-3", number("15", 4));
  expect_last(R"(1.5 \times 10^{3})", number("1500"));
  expect_last("2*10^-2 m", number("2", 2));
  expect_last("3 × 10^4", number("30000"));
  expect_last("5 eggs", number("5"));
  expect_last("10^3", number("1000"));
  expect_last("10^{-2} m", number("1", 2));
  expect_last("7, then y * 10^3", number("7"));
  expect_last("7, then 10^101", number("7"));
}

TEST(LastNumber, SkipsWhatIsNoNumberByItself) {
  expect_last("7, then 2^10", number("7"));
  expect_last("7, then 3x", number("7"));
  expect_last(R"(7, then 2\pi)", number("7"));
  expect_last(R"(7, then 3\sqrt{2})", number("7"));
  expect_last(R"(7, then \frac{x}{3})", number("7"));
  expect_last("7, on 1/2/25", number("7"));
  expect_last("7, at 12:30 pm", number("7"));
  expect_last("7, version 1.2.3", number("7"));
  expect_last("7 by GPT-4", number("7"));
  expect_last("7 is x_2 and x3", number("7"));
  expect_last("7, then 1/0", number("7"));
  expect_last("7, then 1e101", number("7"));
  expect_last("7, then " + std::string(401, '1'), number("7"));
}

TEST(LastNumber, UnitsDoNotMatter) {
  expect_last("72km", number("72"));
  expect_last("72 km/h", number("72"));
  expect_last("5 m^2", number("5"));
  expect_last(R"(72^\circ)", number("72"));
  expect_last(R"(5\text{ cm}^3)", number("5"));
  expect_last("5g", number("5"));
}

TEST(LastNumber, SeparatorsAreThoseOfThousands) {
  expect_last("1,234,567", number("1234567"));
  expect_last(R"(1{,}234)", number("1234"));
  expect_last(R"(12\,345)", number("12345"));
  expect_last("1,23", number("23"));  // a list
}

TEST(LastNumber, ReadsTextsOfAnyLengthInOnePass) {
  constexpr size_t kMany = 200'000;
  std::string braces, digits(kMany, '7');
  for (size_t i = 0; i < kMany; ++i) braces += "1\\frac{";
  expect_last(braces, std::nullopt);
  expect_last(digits, std::nullopt);
  expect_last(std::string(kMany, ' ') + "5", number("5"));
}

TEST(WholeNumber, MayHaveDecorationAndAUnit) {
  for (const char* text : {"72",
                           " 72. ",
                           "$72$",
                           "$72",
                           "72 apples",
                           R"(\$72)",
                           "**72**",
                           R"(\text{72})",
                           "x = 72",
                           "36 + 36 = 72",
                           R"(72\text{ cm}^2)",
                           "72 m^2",
                           "72 km/h",
                           R"(72^\circ)",
                           R"(x \approx 72)",
                           "+72",
                           "{72}",
                           "72.0",
                           "72 (seventy-two)",
                           "(72)",
                           R"(72\;\text{m}\cdot\text{s}^{-1})",
                           R"(\{72\})"}) {
    expect_whole(text, number("72"));
  }
  expect_whole("- 5", -number("5"));
  expect_whole("1 1/2", ratio("3", "2"));
  expect_whole("10^3", number("1000"));
  expect_whole("$5 million", number("5000000"));
  expect_whole(R"(5\text{ million dollars})", number("5000000"));
  expect_whole("\u00bd", ratio("1", "2"));
}

TEST(WholeNumber, IsNothingElse) {
  for (const char* text : {"",
                           "x",
                           "72 of 80",
                           "x72",
                           "72x",
                           "72 x",
                           "7 + 2",
                           "16 - 3",
                           "2^6",
                           R"(3\pi)",
                           R"(\sqrt{3})",
                           "3, 4",
                           "x = 3, y = 4",
                           "16 - x",
                           "about 72",
                           "{5}^2",
                           "1,23",
                           "3!",
                           R"(3\text{ or }4)",
                           "3 or more",
                           "(3,4)",
                           "(1)(2)",
                           "3\u03c0",
                           "\u00b15",
                           "12:30",
                           "5 and a half",
                           R"(72\cdot x)",
                           "3 * 4 m"}) {
    expect_whole(text, std::nullopt);
  }
}

TEST(SingleNumber, IsTheOnlyOneAndStandsByItself) {
  for (const char* text :
       {"the answer: 5.", "about 5", "GPT-4 says **5**", "<answer>5</answer>", "x_1 is 5 cm", "5 apples and pears"}) {
    expect(single_number(plain_math(text)), number("5"), text);
  }
  for (const char* text : {"(3,4)",   "1 000 000", "100,00",     "3!",        "\u00b15", "1,5",     "12:30",
                           "x > 7",   "x>7",       R"(x \ge 7)", "3 m 20 cm", "3 or 4",  "x - 3",   "16 - x",
                           R"(3\pi)", "3\u03c0",   "2^3",        "5 + x",     "2x + 3",  "a = 1/0", "1 hour 30 minutes",
                           "|5|",     "x*5",       "none"}) {
    expect(single_number(plain_math(text)), std::nullopt, text);
  }
}

TEST(WholeNumber, TellsOfAPercentSign) {
  for (const char* text : {"50%", R"(50\%)", "50 %", "50 percent"}) {
    const auto found = whole_number(plain_math(text));
    ASSERT_TRUE(found) << text;
    EXPECT_TRUE(found->percent) << text;
    EXPECT_TRUE(found->value == number("50")) << text;
  }
  EXPECT_FALSE(whole_number("50")->percent);
}

TEST(LastBoxed, HasBalancedBraces) {
  EXPECT_EQ(last_boxed(R"(\boxed{1} and \boxed{\frac{3}{4}}.)"), R"(\frac{3}{4})");
  EXPECT_EQ(last_boxed(R"(\boxed{\boxed{5}})"), "5");
  EXPECT_EQ(last_boxed(R"(\fbox{ 5 })"), "5");
  EXPECT_EQ(last_boxed(R"(\boxed{\{1\}})"), R"(\{1\})");
  EXPECT_EQ(last_boxed(R"($\boxed 72$ it is)"), "72");
  EXPECT_EQ(last_boxed(R"(\boxed{1} then \boxed{\frac{3}{4})"), std::nullopt);  // cut off
  EXPECT_EQ(last_boxed(R"(\boxed{)"), std::nullopt);
  EXPECT_EQ(last_boxed("boxed{1}"), std::nullopt);
}

TEST(AfterHashes, IsTheLineBehindTheLast) {
  EXPECT_EQ(after_hashes("#### 1\n#### 2 \nend"), "2");
  EXPECT_EQ(after_hashes("####\n 2\n3"), "2");
  EXPECT_EQ(after_hashes("### 2"), std::nullopt);
}

}  // namespace
}  // namespace sluice::nodes::number_in_text_test
