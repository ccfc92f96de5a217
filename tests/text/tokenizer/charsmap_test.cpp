#include "text/tokenizer/charsmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text/strings.h"
#include "tests/text/tokenizer_fixtures.h"
#include "text/tokenizer/base64.h"

namespace sluice::text::charsmap_test {
namespace {

using testing::HasSubstr;

std::string bytes_of(std::initializer_list<uint32_t> units, std::string_view replacements) {
  std::string bytes;
  const auto append = [&bytes](uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> 8 * i & 0xFF);
  };
  append(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) append(unit);
  return bytes + std::string(replacements);
}

std::string error_of(std::string_view bytes, std::string_view text = "") {
  try {
    return Charsmap(bytes, "map").apply(text);
  } catch (const UserError& error) {
    return error.what();
  }
}

// The map of a tokenizer that SentencePiece made: tests/oracles/sentencepiece_models.py.
Charsmap made_by_sentencepiece() {
  for (const std::string& line : split(read_file(golden_tokenizer_folder() / "families.jsonl"), '\n')) {
    const json family = json::parse(line);
    if (family.at("name") == "t5-like")
      return {*from_base64(family.at("tokenizer").at("normalizer").at("precompiled_charsmap").get<std::string>()), "map"};
  }
  throw std::runtime_error("no t5-like family");
}

TEST(Charsmap, WritesForEachCharacterWhatTheMapHas) {
  const Charsmap charsmap = made_by_sentencepiece();
  EXPECT_EQ(charsmap.apply("Z\u00a0\u00bd\ufb01,\u200d!!"), "zz 1\u20442fi,!!") << "two signs are two graphemes";
  EXPECT_EQ(charsmap.apply("\u2167\u00e9"), "VIII\u00e9");
  EXPECT_EQ(charsmap.apply(""), "");
}

TEST(Charsmap, AShortGraphemeBecomesWhatItsBeginIsWrittenAs) {
  const Charsmap charsmap = made_by_sentencepiece();
  EXPECT_EQ(charsmap.apply("e\u0301"), "\u00e9");
  EXPECT_EQ(charsmap.apply("\u00a9\u0300"), "(c)") << "the accent is lost, as in the reference";
  EXPECT_EQ(charsmap.apply("\u00a9\u0300\u0300"), "(c)\u0300\u0300") << "six bytes: character by character";
}

TEST(Charsmap, MalformedMapsAreRefused) {
  EXPECT_THAT(error_of("abc"), HasSubstr("map: the charsmap is malformed: it has no size"));
  EXPECT_THAT(error_of(std::string(4, '\0')), HasSubstr("a trie of 0 bytes among 0"));
  EXPECT_THAT(error_of(bytes_of({1, 2}, "").substr(0, 8)), HasSubstr("a trie of 8 bytes among 4"));
  EXPECT_THAT(error_of(bytes_of({0}, "\xFF")), HasSubstr("the replacements are not UTF-8"));
}

// The root leads to unit 'a', whose leaf is unit 'a' ^ 1.
TEST(Charsmap, AMapThatLeadsNowhereIsNoMap) {
  std::vector<uint32_t> units(128);
  const auto with = [&](uint32_t leaf, std::string_view replacements) {
    units['a'] = 'a' | 1 << 8 | 1 << 10;
    units['a' ^ 1] = leaf;
    std::string bytes = bytes_of({}, "");
    bytes[1] = 2;  // 512 bytes
    for (const uint32_t unit : units) bytes += bytes_of({unit}, "").substr(4);
    return error_of(bytes + std::string(replacements), "bad");
  };
  EXPECT_EQ(with(2, std::string("x\0y\0", 4)), "byd");
  EXPECT_EQ(with(4, std::string("x\0y\0", 4)), "bd") << "after the end is nothing";
  EXPECT_THAT(with(9, "x"), HasSubstr("no replacement begins at 9"));
  EXPECT_THAT(with(1, "\u00e9"), HasSubstr("no replacement begins at 1"));
  EXPECT_THAT(with(0, std::string(1000, 'x')), HasSubstr("longer than"));
  units['b'] = 'b' | 1 << 8 | 1u << 30;
  EXPECT_EQ(with(2, std::string("x\0y\0", 4)), "byd") << "a leaf outside of the trie";
}

TEST(Base64, IsReadWithItsPadding) {
  EXPECT_EQ(from_base64("TWFu"), "Man");
  EXPECT_EQ(from_base64("TWE="), "Ma");
  EXPECT_EQ(from_base64("TQ=="), "M");
  EXPECT_EQ(from_base64("+/+/"), "\xFB\xFF\xBF");
  EXPECT_EQ(from_base64(""), "");
  for (const char* bad : {"TWF", "TW=u", "T===", "TWF\n", "TWF-"}) EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace sluice::text::charsmap_test
