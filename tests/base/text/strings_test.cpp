#include "base/text/strings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/numbers/random.h"

namespace sluice::strings_test {
namespace {

using testing::ElementsAre;

TEST(Strings, JoinPutsTheSeparatorBetween) {
  EXPECT_EQ(join({"a", "", "c"}, ", "), "a, , c");
  EXPECT_EQ(join({}, ", "), "");
}

TEST(Strings, SplitKeepsEmptyParts) {
  EXPECT_THAT(split("a,,b,", ','), ElementsAre("a", "", "b", ""));
  EXPECT_THAT(split("", ','), ElementsAre(""));
}

TEST(Strings, TrimTakesBlanksFromBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
}

TEST(Strings, FirstLineIsAllThereIsWithoutABreak) {
  EXPECT_EQ(first_line("disk full\n  = help\n"), "disk full");
  EXPECT_EQ(first_line("disk full"), "disk full");
  EXPECT_EQ(first_line("\nbelow"), "");
}

TEST(Strings, SmallLettersChangesAsciiAlone) { EXPECT_EQ(small_letters("AZ [Ä] az"), "az [Ä] az"); }

TEST(Strings, QuotedEscapesAsTomlDoes) {
  EXPECT_EQ(sluice::quoted("a\"b\\c"), R"("a\"b\\c")");
  EXPECT_EQ(sluice::quoted("\n\t\r\x01\x7f"), R"("\n\t\u000D\u0001\u007F")");
  EXPECT_EQ(sluice::quoted("größe 数"), "\"größe 数\"");
}

TEST(DidYouMean, FindsATypingMistake) {
  const std::vector<std::string> keys = {"max_new_tokens", "model", "temperature", "top_p"};
  EXPECT_EQ(did_you_mean("max_new_token", keys), "max_new_tokens");
  EXPECT_EQ(did_you_mean("mdoel", keys), "model");  // two neighbours swapped
  EXPECT_EQ(did_you_mean("temprature", keys), "temperature");
  EXPECT_EQ(did_you_mean("topp", keys), "top_p");
}

TEST(DidYouMean, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(did_you_mean("learning_rate", {"model", "top_p"}), "");
  EXPECT_EQ(did_you_mean("x", {}), "");
  EXPECT_EQ(did_you_mean(std::string(100000, 'a'), {std::string(100000, 'b')}), "");
}

TEST(DidYouMean, PrefersTheNearest) { EXPECT_EQ(did_you_mean("values", {"valves_", "value", "vales_s"}), "value"); }

TEST(Strings, PluralAddsAnS) {
  EXPECT_EQ(plural(0, "file"), "0 files");
  EXPECT_EQ(plural(1, "file"), "1 file");
  EXPECT_EQ(plural(2, "file"), "2 files");
}

TEST(HumanBytes, UsesPowersOfAThousand) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(830), "830 B");
  EXPECT_EQ(human_bytes(5.1e6), "5.1 MB");
  EXPECT_EQ(human_bytes(99.96e6), "100 MB");
  EXPECT_EQ(human_bytes(999.4e6), "999 MB");
  EXPECT_EQ(human_bytes(999.6e6), "1.0 GB");
  EXPECT_EQ(human_bytes(3e15), "3000 TB");
  EXPECT_EQ(human_bytes(int64_t{5'100'000}), "5.1 MB");
}

TEST(HumanCount, KeepsSmallNumbersWhole) {
  EXPECT_EQ(human_count(512), "512");
  EXPECT_EQ(human_count(5120), "5.1k");
  EXPECT_EQ(human_count(16384), "16.4k");
  EXPECT_EQ(human_count(999999), "1.0M");
  EXPECT_EQ(human_count(-2300000), "-2.3M");
}

TEST(HumanSeconds, GetsCoarserAsTimeGrows) {
  EXPECT_EQ(human_seconds(0.84), "0.8 s");
  EXPECT_EQ(human_seconds(9.96), "10 s");
  EXPECT_EQ(human_seconds(71), "71 s");
  EXPECT_EQ(human_seconds(250), "4 min 10 s");
  EXPECT_EQ(human_seconds(7500), "2 h 5 min");
}

TEST(UtcText, IsWhatOthersRead) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(951'782'400), "2000-02-29T00:00:00Z");
}

TEST(RealText, ReadsBackAsTheSameNumber) {
  RandomStream random(1, 0);
  for (int i = 0; i < 2000; ++i) {
    const double value = random.normal() * std::pow(10.0, static_cast<double>(random.below(600)) - 300);
    EXPECT_EQ(std::strtod(real_text(value).c_str(), nullptr), value);
  }
}

TEST(RealText, LooksLikeAFloat) {
  EXPECT_EQ(real_text(1), "1.0");
  EXPECT_EQ(real_text(-0.0), "-0.0");
  EXPECT_EQ(real_text(0.1), "0.1");
  EXPECT_EQ(real_text(1e22), "1e+22");
  EXPECT_EQ(real_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(real_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Utf8, AcceptsTheBoundariesOfEachLength) {
  // U+007F, U+0080, U+07FF, U+0800, U+D7FF, U+E000, U+FFFF, U+10000, U+10FFFF
  EXPECT_TRUE(is_utf8("\x7f\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
  EXPECT_TRUE(is_utf8(""));
}

// Cases of Markus Kuhn's UTF-8 decoder stress test.
TEST(Utf8, RefusesMalformedSequences) {
  EXPECT_FALSE(is_utf8("\x80"));              // 3.1 unexpected continuation
  EXPECT_FALSE(is_utf8("\xC3 "));             // 3.2 lonely start
  EXPECT_FALSE(is_utf8("\xE2\x82"));          // 3.3 last byte missing
  EXPECT_FALSE(is_utf8("\xFE"));              // 3.5 impossible byte
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // 4.1 overlong slash
  EXPECT_FALSE(is_utf8("\xE0\x80\xAF"));      // 4.1
  EXPECT_FALSE(is_utf8("\xF0\x80\x80\xAF"));  // 4.1
  EXPECT_FALSE(is_utf8("\xE0\x9F\xBF"));      // 4.2 overlong U+07FF
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // 5.1 surrogate
  EXPECT_FALSE(is_utf8("\xED\xBF\xBF"));      // 5.1
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // beyond U+10FFFF
}

}  // namespace
}  // namespace sluice::strings_test
