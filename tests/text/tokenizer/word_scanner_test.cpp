// The scanners written by hand against the same patterns in Oniguruma.
#include "text/tokenizer/word_scanner.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/text/random_text.h"
#include "text/unicode/oniguruma.h"
#include "text/unicode/regex_properties.h"

namespace sluice::text::word_scanner_test {
namespace {

using Words = std::vector<std::string>;

Words scanned(std::string_view pattern, std::string_view text) {
  const WordScanner scanner = WordScanner::for_pattern(pattern).value();
  Words words;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = scanner.word_end(text, begin);
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

class ScannedPattern : public testing::TestWithParam<std::string_view> {};

TEST_P(ScannedPattern, CutsRandomTextAsOnigurumaDoes) {
  const Regex regex(with_fixed_properties(GetParam()), "pattern");
  std::mt19937 stream(3);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random_text(stream);
    Words words;
    for (const auto& [begin, end] : regex.find_all(text)) words.push_back(text.substr(begin, end - begin));
    ASSERT_EQ(scanned(GetParam(), text), words) << testing::PrintToString(text);
  }
}

INSTANTIATE_TEST_SUITE_P(Known, ScannedPattern,
                         testing::Values(WordScanner::kGpt2Pattern, WordScanner::kLlama3Pattern, WordScanner::kQwenPattern),
                         [](const auto& info) { return std::string(1, static_cast<char>('A' + info.index)); });

TEST(WordScanner, CutsByHandAsThePaperSays) {
  EXPECT_EQ(scanned(WordScanner::kGpt2Pattern, "I'll  go 1234 \n\n now!?"),
            (Words{"I", "'ll", " ", " go", " 1234", " \n\n", " now", "!?"}));
  EXPECT_EQ(scanned(WordScanner::kLlama3Pattern, "I'LL go 1234 \n\n now!?\n"),
            (Words{"I", "'LL", " go", " ", "123", "4", " \n\n", " now", "!?\n"}));
  EXPECT_EQ(scanned(WordScanner::kQwenPattern, "\"a\" 12"), (Words{"\"a", "\"", " ", "1", "2"}));
}

TEST(WordScanner, KnowsNoOtherPattern) { EXPECT_FALSE(WordScanner::for_pattern(R"(\p{L}+)").has_value()); }

TEST(RegexProperties, SpellsOutWhatItKnows) {
  EXPECT_EQ(with_fixed_properties(R"(\p{Lt}{2})").substr(0, 27), R"([\x{1C5}-\x{1C5}\x{1C8}-\x{)");
  EXPECT_TRUE(with_fixed_properties(R"(\P{Nd})").starts_with("[^\\x{30}-\\x{39}"));
  EXPECT_TRUE(with_fixed_properties(R"(\p{^Nd})").starts_with("[^\\x{30}-\\x{39}"));
  EXPECT_EQ(with_fixed_properties(R"(\\p{L}\p{Han}\s\x{41}\)"), R"(\\p{L}\p{Han}\s\x{41}\)");
}

// U+10D40 is a digit since Unicode 16.
TEST(RegexProperties, MatchWhatThePackageMatches) {
  const Regex digits(with_fixed_properties(R"(\d+|[^\p{Nd}a-z]|\W)"), "pattern");
  const auto matches = digits.find_all("\U00010D40\U00010D41a-");
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0].end, 8u);
  EXPECT_EQ(matches[1].begin, 9u);
}

// Each match costs some hundred steps back, and there are as many matches as bytes.
TEST(Regex, StepsOfAllMatchesAreCountedTogether) {
  const Regex regex("a(?=(?:a|c){0,500}b)|a", "file: key");
  EXPECT_EQ(regex.find_all(std::string(1000, 'a')).size(), 1000u);
  EXPECT_THROW(regex.find_all(std::string(1 << 18, 'a')), UserError);
}

}  // namespace
}  // namespace sluice::text::word_scanner_test
