#include "base/text/utf8.h"

#include <gtest/gtest.h>

#include <string_view>

namespace sluice::utf8_test {
namespace {

TEST(CodePoints, AreCountedWhereTheyBegin) {
  EXPECT_EQ(count_code_points(""), 0u);
  EXPECT_EQ(count_code_points("aß数\U0001F600"), 4u);
}

TEST(CodePoints, AreContinuedByBytesThatBeginNone) {
  constexpr std::string_view kText = "ß数";
  EXPECT_FALSE(is_continuation(kText[0]));
  EXPECT_TRUE(is_continuation(kText[1]));
  EXPECT_FALSE(is_continuation(kText[2]));
  EXPECT_TRUE(is_continuation(kText[4]));
  EXPECT_FALSE(is_continuation('a'));
}

}  // namespace
}  // namespace sluice::utf8_test
