#include "text/tokenizer/response_text.h"

#include <gtest/gtest.h>

#include "base/numbers/random.h"
#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text::response_text_test {
namespace {

using Ids = std::vector<int64_t>;

// Llama 2's manner: bytes that no token stands for are tokens <0x00> to <0xFF>, here 10 (a line end) and three of others.
Tokenizer sentencepiece() {
  return load_json(json::parse(R"({"model": {"type": "BPE", "byte_fallback": true, "merges": [],
      "vocab": {"\u2581a": 0, "b": 1, "<0x0A>": 2, "<0xC3>": 3, "<0xA9>": 4, "\u2581": 5}},
      "added_tokens": [{"content": "<s>", "id": 6, "special": true}],
      "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})"));
}

// The number of tokens after which `stop` is found; 0: never.
size_t found_after(const Tokenizer& tokenizer, const Ids& ids, const std::string& stop) {
  ResponseText text(tokenizer);
  for (size_t i = 0; i < ids.size(); ++i) {
    text.push(ids[i]);
    if (text.has({stop})) return i + 1;
  }
  return 0;
}

TEST(ResponseText, AStopStringMaySpanTokensAndEndWithinOne) {
  const Tokenizer tokenizer = load_json(small_tokenizer());  // the ids of bytes are the bytes
  const Ids hello = tokenizer.encode("say </calc> now");
  Ids bytes;
  for (const char c : std::string("say </calc> now")) bytes.push_back(c);
  EXPECT_EQ(found_after(tokenizer, bytes, "</calc>"), 11u);
  EXPECT_EQ(found_after(tokenizer, bytes, "</calc>?"), 0u);
  EXPECT_EQ(tokenizer.decode(std::span(hello).first(found_after(tokenizer, hello, "</calc>"))).substr(0, 11), "say </calc>");
}

TEST(ResponseText, AByteTokenCompletesAStopStringAtOnce) {
  const Tokenizer tokenizer = sentencepiece();
  EXPECT_EQ(found_after(tokenizer, {0, 2, 2, 1}, "\n\n"), 3u);
  EXPECT_EQ(found_after(tokenizer, {1, 3, 4, 2, 1}, "\u00E9\n"), 4u);
  EXPECT_EQ(found_after(tokenizer, {2, 2}, "\n\n"), 2u);
}

TEST(ResponseText, ABlankInFrontOfATokenCounts) {
  EXPECT_EQ(found_after(sentencepiece(), {1, 0}, "b a"), 2u);
  EXPECT_EQ(found_after(sentencepiece(), {0, 5, 2}, " \n"), 3u);
}

TEST(ResponseText, SpecialTokensAreNoText) { EXPECT_EQ(found_after(sentencepiece(), {1, 6, 1}, "bb"), 3u); }

TEST(ResponseText, TheNameOfASpecialTokenIsFoundWhereThatStands) {
  EXPECT_EQ(found_after(sentencepiece(), {1, 6, 1}, "<s>"), 2u);
  EXPECT_EQ(found_after(sentencepiece(), {1, 1}, "<s>"), 0u);
  EXPECT_EQ(found_after(sentencepiece(), {1, 6, 1}, "b<s>"), 0u);  // by itself alone
}

TEST(ResponseText, ATurnLooksNoFurtherBackThanItsBegin) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  ResponseText text(tokenizer);
  text.push('a');
  EXPECT_TRUE(text.has({"a"}));
  text.begin_turn();
  EXPECT_FALSE(text.has({"a"}));
  text.push('b');
  EXPECT_FALSE(text.has({"ab"}));
  EXPECT_TRUE(text.has({"x", "b"}));
  EXPECT_EQ(text.all(), "ab");
  EXPECT_EQ(text.turn(), "b");
}

std::string without_parts_at_end(std::string text) {
  while (text.ends_with("\uFFFD")) text.resize(text.size() - 3);
  return text;
}

// The oracle is the tokenizer: after each token the whole is decoded and searched.
void expect_as_decoded(const Tokenizer& tokenizer, int64_t ids, const std::vector<std::string>& stops) {
  RandomStream random(5, 0);
  for (int round = 0; round < 300; ++round) {
    ResponseText text(tokenizer);
    Ids all;
    while (all.size() < 20) {
      all.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(ids))));
      text.push(all.back());
      const std::string decoded = tokenizer.decode(all, /*skip_special=*/true);
      ASSERT_EQ(without_parts_at_end(text.all()), without_parts_at_end(decoded));
      const bool ends = std::ranges::any_of(stops, [&](const auto& stop) { return decoded.find(stop) != std::string::npos; });
      ASSERT_EQ(text.has(stops), ends) << decoded;
      if (ends) break;
    }
  }
}

TEST(ResponseText, IsWhatTheTokenizerMakesOfAllTokens) {
  expect_as_decoded(sentencepiece(), 7, {"\n\n\n", "\u00E9", "a b"});
  expect_as_decoded(load_json(small_tokenizer()), 260, {"e", "\xC3\xA9", " t"});
}

}  // namespace
}  // namespace sluice::text::response_text_test
