#include "text/tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <random>

#include "base/text/strings.h"
#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text::stream_decoder_test {
namespace {

using Ids = std::vector<int64_t>;
using Pieces = std::vector<std::string>;

// What each id gives, then the rest.
Pieces streamed(const Tokenizer& tokenizer, const Ids& ids, bool skip_special = false) {
  StreamDecoder stream(tokenizer, skip_special);
  Pieces pieces;
  for (const int64_t id : ids) pieces.push_back(stream.push(id));
  pieces.push_back(stream.finish());
  return pieces;
}

json sentencepiece() {
  return json::parse(R"({"model": {"type": "BPE", "byte_fallback": true, "merges": [],
      "vocab": {"\u2581a": 0, "b": 1, "<0xC3>": 2, "<0xA9>": 3, "\u2581": 4}},
      "added_tokens": [{"content": "<s>", "id": 5, "special": true}],
      "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
          {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})");
}

TEST(StreamDecoder, HalfACharacterWaitsForItsOtherHalf) {
  const Tokenizer tokenizer = load_json(small_tokenizer());  // the ids of bytes are the bytes
  EXPECT_EQ(streamed(tokenizer, {'a', 0xF0, 0x9F, 0xA6, 0x99, 'b'}), (Pieces{"a", "", "", "", "\U0001F999", "b", ""}));
}

TEST(StreamDecoder, BrokenCharactersAreReplacedAsSoonAsTheyAreBroken) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  EXPECT_EQ(streamed(tokenizer, {0x80, 0xE1, 0x80, 'x', 0xC3}), (Pieces{"\uFFFD", "", "", "\uFFFDx", "", "\uFFFD"}));
}

TEST(StreamDecoder, ARunOfByteTokensWaitsForItsEnd) {
  const Tokenizer tokenizer = load_json(sentencepiece());
  EXPECT_EQ(streamed(tokenizer, {1, 2, 3, 1}), (Pieces{"b", "", "", "\u00E9b", ""}));
  EXPECT_EQ(streamed(tokenizer, {2, 3, 2}), (Pieces{"", "", "", "\uFFFD\uFFFD\uFFFD"}));
}

TEST(StreamDecoder, OnlyTheFirstBlankOfTheTextIsStripped) {
  const Tokenizer tokenizer = load_json(sentencepiece());
  EXPECT_EQ(streamed(tokenizer, {0, 0}), (Pieces{"a", " a", ""}));
  EXPECT_EQ(streamed(tokenizer, {4, 4, 1}), (Pieces{"", " ", "b", ""}));
}

TEST(StreamDecoder, SkippedTokensAreAsIfTheyWereNotThere) {
  const Tokenizer tokenizer = load_json(sentencepiece());
  EXPECT_EQ(streamed(tokenizer, {5, 0, 5, 1}, true), (Pieces{"", "a", "", "b", ""}));
  EXPECT_EQ(streamed(tokenizer, {5, 0}, false), (Pieces{"<s>", " a", ""}));
  EXPECT_EQ(streamed(tokenizer, {99, -1, 1}), (Pieces{"", "", "b", ""})) << "ids without a token";
}

TEST(StreamDecoder, NoIdsGiveNoText) { EXPECT_EQ(streamed(load_json(sentencepiece()), {}), (Pieces{""})); }

// On random ids, with neighbours in a row as byte tokens are.
void expect_stream_equals_decode(const Tokenizer& tokenizer, uint32_t seed) {
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    Ids ids;
    for (size_t runs = random() % 12; runs > 0; --runs) {
      const int64_t first = random() % static_cast<uint32_t>(tokenizer.vocab_size());
      const auto length = static_cast<int64_t>(1 + random() % 4);
      for (int64_t i = 0; i < length; ++i) ids.push_back(first + i);
    }
    const bool skip_special = round % 2 == 0;
    std::string joined;
    for (const std::string& piece : streamed(tokenizer, ids, skip_special)) {
      EXPECT_TRUE(is_utf8(piece)) << json(ids);
      joined += piece;
    }
    ASSERT_EQ(joined, tokenizer.decode(ids, skip_special)) << json(ids);
  }
}

TEST(StreamDecoder, GivesTheTextOfDecodeForEveryFamily) {
  const std::string file = read_file(golden_tokenizer_folder() / "families.jsonl");
  uint32_t seed = 0;
  for (const std::string& line : split(std::string(trim(file)), '\n')) {
    expect_stream_equals_decode(load_json(json::parse(line).at("tokenizer")), ++seed);
  }
}

TEST(StreamDecoder, GivesTheTextOfDecodeForRealTokenizers) {
  for (const char* name : {"gpt2", "phi-3-mini"}) {
    const auto folder = real_tokenizer(name);
    if (!folder) GTEST_SKIP() << "needs tokenizers/" << name << " of the test data (SLUICE_TEST_DATA)";
    expect_stream_equals_decode(Tokenizer::load(*folder), 5);
  }
}

}  // namespace
}  // namespace sluice::text::stream_decoder_test
