// The borders of graphemes: samples of Unicode's GraphemeBreakTest.txt, one for each rule.
#include "text/unicode/graphemes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::text::graphemes_test {
namespace {

std::vector<std::string> graphemes(std::string_view text) {
  std::vector<std::string> found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = grapheme_end(text, begin);
    found.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return found;
}

using Pieces = std::vector<std::string>;

TEST(Graphemes, LineEndsAndControlsStandAlone) {
  EXPECT_EQ(graphemes("\r\n\n\r\u0308"), (Pieces{"\r\n", "\n", "\r", "\u0308"}));
  EXPECT_EQ(graphemes("a\u0001\u0308"), (Pieces{"a", "\u0001", "\u0308"}));
}

TEST(Graphemes, MarksBelongToWhatIsBeforeThemAndPrependedSignsToWhatFollows) {
  EXPECT_EQ(graphemes("a\u0308b\u0903c\u200d"), (Pieces{"a\u0308", "b\u0903", "c\u200d"}));
  EXPECT_EQ(graphemes("\u0600a\u0600\r"), (Pieces{"\u0600a", "\u0600", "\r"}));
}

TEST(Graphemes, SyllablesOfHangul) {
  EXPECT_EQ(graphemes("\u1100\u1160\u11a8\u1100"), (Pieces{"\u1100\u1160\u11a8", "\u1100"}));
  EXPECT_EQ(graphemes("\uac00\u11a8\uac01\u11a8\u1160"), (Pieces{"\uac00\u11a8", "\uac01\u11a8", "\u1160"}));
}

TEST(Graphemes, FlagsAreOfTwoSigns) {
  EXPECT_EQ(graphemes("a\U0001F1E6\U0001F1E7\U0001F1E8b"), (Pieces{"a", "\U0001F1E6\U0001F1E7", "\U0001F1E8", "b"}));
}

TEST(Graphemes, EmojiThatAreJoined) {
  EXPECT_EQ(graphemes("\U0001F476\U0001F3FF\u0308\u200D\U0001F476\U0001F3FFa"),
            (Pieces{"\U0001F476\U0001F3FF\u0308\u200D\U0001F476\U0001F3FF", "a"}));
  EXPECT_EQ(graphemes("a\u200D\U0001F6D1"), (Pieces{"a\u200D", "\U0001F6D1"}));
}

TEST(Graphemes, ConsonantsThatAreJoined) {
  EXPECT_EQ(graphemes("\u0915\u093C\u200D\u094D\u0924"), (Pieces{"\u0915\u093C\u200D\u094D\u0924"}));
  EXPECT_EQ(graphemes("\u0915\u0924\u094Da"), (Pieces{"\u0915", "\u0924\u094D", "a"}));
}

}  // namespace
}  // namespace sluice::text::graphemes_test
