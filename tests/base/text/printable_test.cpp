#include "base/text/printable.h"

#include <gtest/gtest.h>

#include "base/text/strings.h"

namespace sluice::printable_test {
namespace {

TEST(Printable, OrdinaryTextStaysAsItIs) {
  for (const std::string text : {"", "2 + 2 = 4", "C:\\new", "Füße, 你好, שלום, 😀", "e\u0301"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ControlCharactersAreEscapes) {
  EXPECT_EQ(printable("\x1b[2J\a\b\x7f"), "\\x1b[2J\\x07\\x08\\x7f");
  EXPECT_EQ(printable("a\r\n\tb"), "a\\r\\n\\tb");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
}

// A terminal takes U+009B for the beginning of a sequence, as it does ESC [.
TEST(Printable, C1ControlsAreEscapesToo) {
  EXPECT_EQ(printable("\u009b31m\u0080\u009f"), "\\u009b31m\\u0080\\u009f");
  EXPECT_EQ(printable("\u00a0"), "\u00a0");
}

TEST(Printable, WhatTurnsTheDirectionOfWritingIsAnEscape) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u2069\u200f\u061c"), "a\\u202eb\\u2066c\\u2069\\u200f\\u061c");
}

TEST(Printable, LineSeparatorsAndTagsAreEscapes) {
  EXPECT_EQ(printable("\u2028\u2029\ufeff\U000e0041"), "\\u2028\\u2029\\ufeff\\U000e0041");
}

TEST(Printable, BytesThatAreNotUtf8AreEscapesOneByOne) {
  EXPECT_EQ(printable("caf\xe9 \xc3"), "caf\\xe9 \\xc3");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // an overlong form
}

TEST(Printable, EmojiAreNotTornApart) { EXPECT_EQ(printable("👩‍💻"), "👩‍💻"); }

TEST(Printable, LinesAreKeptWhereTheyAreWanted) { EXPECT_EQ(printable("a\n\tb\r\x1b", Lines::kKept), "a\n\tb\\r\\x1b"); }

// Whatever comes: the result is UTF-8 without a byte that a terminal acts on.
TEST(Printable, NothingSteersATerminal) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string shown = printable(std::string{static_cast<char>(first), static_cast<char>(second)});
      ASSERT_TRUE(is_utf8(shown));
      for (size_t i = 0; i < shown.size(); ++i) {
        const auto byte = static_cast<unsigned char>(shown[i]);
        ASSERT_TRUE(byte >= 0x20 && byte != 0x7f) << first << " " << second;
        const bool c1 = byte == 0xC2 && static_cast<unsigned char>(shown[i + 1]) < 0xA0;
        ASSERT_FALSE(c1) << first << " " << second;
      }
    }
  }
}

TEST(PrintedWidth, CountsCells) {
  EXPECT_EQ(printed_width("abc"), 3u);
  EXPECT_EQ(printed_width("ü"), 1u);
  EXPECT_EQ(printed_width("你好"), 4u);
  EXPECT_EQ(printed_width("\x1b"), 4u);
}

TEST(Shortened, KeepsWhatFits) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdefg", 6), "abc...");
  EXPECT_EQ(shortened("你好吗", 5), "你...");
  EXPECT_EQ(shortened("abcd", 2), "..");
}

TEST(Shortened, DoesNotCutAnEscapeInTwo) { EXPECT_EQ(shortened("ab\x1b[31m", 7), "ab..."); }

}  // namespace
}  // namespace sluice::printable_test
