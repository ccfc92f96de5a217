#include "base/text/shown_text.h"

#include <gtest/gtest.h>

namespace sluice::shown_text_test {
namespace {

TEST(ShownText, IsCutBetweenCharacters) {
  EXPECT_EQ(shown_text("abcdef", 3), R"("abc...")");
  EXPECT_EQ(shown_text("abc", 3), R"("abc")");
  EXPECT_EQ(shown_text("\u00e9\u00e9\u00e9", 3), "\"\u00e9\u00e9...\"");
}

TEST(ShownText, HoldsNothingThatATerminalObeys) {
  EXPECT_EQ(shown_text("\x1b[2J\r\n\t\x7f\"\\"), R"("\u001B[2J\u000D\n\t\u007F\"\\")");
  EXPECT_EQ(shown_text("\xc2\x9b"
                       "31m"),
            R"("\xc2\x9b31m")");
  EXPECT_EQ(shown_text("\u202eabc\u2066"), R"("\xe2\x80\xaeabc\xe2\x81\xa6")");
  EXPECT_EQ(shown_text("a\xff\xc3"), R"("a\xff\xc3")");
}

}  // namespace
}  // namespace sluice::shown_text_test
