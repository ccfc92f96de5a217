#include "nodes/scorers/exact_json.h"

#include <gtest/gtest.h>

namespace sluice::nodes::exact_json_test {
namespace {

std::string written(const std::string& text, WholeFloats floats = WholeFloats::kStay) {
  return text_of_exact(exact_json(text, floats));
}

TEST(ExactJson, KeepsEveryDigitOfIntegers) {
  for (const char* text : {"0", "-5", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616",
                           "-9223372036854775809", "123456789012345678901234567890"}) {
    EXPECT_EQ(written(text), text);
    EXPECT_EQ(written("{\"a\":[" + std::string(text) + ",\"x\"],\"b\":true}"),
              "{\"a\":[" + std::string(text) + ",\"x\"],\"b\":true}");
  }
}

TEST(ExactJson, WholeFloatsBecomeIntegersOnRequest) {
  EXPECT_EQ(written("[1.0,1e3,2.5]"), "[1.0,1000.0,2.5]");
  constexpr WholeFloats kIntegers = WholeFloats::kBecomeIntegers;
  EXPECT_EQ(written("[1.0,1e3,-1.50e2,0.0,-0.0,100e-2,0e5]", kIntegers), "[1,1000,-150,0,0,1,0]");
  EXPECT_EQ(written("1e30", kIntegers), "1000000000000000000000000000000");  // which is not the double next to it
  EXPECT_EQ(written("[2.5,1e-3,12e-1]", kIntegers), "[2.5,0.001,1.2]");
}

TEST(ExactJson, TellsBigIntegersFromTexts) {
  const Json value = exact_json(R"(["18446744073709551616", 18446744073709551616, 5])");
  EXPECT_TRUE(is_text(value[0]));
  EXPECT_FALSE(is_text(value[1]));
  EXPECT_EQ(big_integer_in(value[0]), "");
  EXPECT_EQ(big_integer_in(value[1]), "18446744073709551616");
  EXPECT_EQ(big_integer_in(value[2]), "");
}

TEST(ExactJson, HasTheLimitsOfOtherJson) {
  for (const std::string& text : {std::string("{"), std::string(1000, '[') + std::string(1000, ']'), std::string(400, '9')}) {
    EXPECT_TRUE(exact_json(text).is_discarded());
  }
}

}  // namespace
}  // namespace sluice::nodes::exact_json_test
