#include "text/tokenizer/token_offsets.h"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/source_folder.h"
#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text::token_offsets_test {
namespace {

using ::testing::ElementsAre;

class AssistantMask : public ::testing::TestWithParam<const char*> {};

TEST_P(AssistantMask, IsThatOfTransformers) {
  const auto folder = real_tokenizer(GetParam());
  if (!folder) GTEST_SKIP() << "no test data";
  const Tokenizer tokenizer = Tokenizer::load(*folder);
  std::ifstream lines(fs::path(tests::source_folder()) / "tests/golden/text/assistant_mask.jsonl");
  size_t cases = 0, without_places = 0;
  for (std::string line; std::getline(lines, line);) {
    const json one = json::parse(line);
    if (one.at("tokenizer") != GetParam()) continue;
    std::vector<ByteRange> ranges;
    for (const json& range : one.at("ranges")) ranges.push_back({range[0], range[1]});
    const auto ids = one.at("ids").get<std::vector<int64_t>>();
    ++cases;
    const auto mask = tokens_in_ranges(tokenizer, one.at("text").get<std::string>(), ids, ranges);
    if (mask)
      EXPECT_EQ(json(*mask), one.at("mask")) << one.at("text");
    else
      ++without_places;
  }
  EXPECT_GT(cases, 20u);
  // Only where the normaliser of Qwen changes a text that has no special token before the next border.
  EXPECT_LE(without_places, GetParam() == std::string("gpt2") ? 0 : cases / 2);
}

INSTANTIATE_TEST_SUITE_P(Real, AssistantMask, ::testing::Values("gpt2", "qwen2", "phi-3-mini"));

TEST(TokensInRanges, TokensThatHoldPartOfARangeAreInIt) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  const std::vector<int64_t> ids{'a', 'b', 'c', 'd'};
  const std::vector<ByteRange> ranges{{1, 2}, {3, 4}};
  EXPECT_THAT(*tokens_in_ranges(tokenizer, "abcd", ids, ranges), ElementsAre(0, 1, 0, 1));
}

TEST(TokensInRanges, UnigramTokensHaveTheirPlacesThoughBlanksAreSqueezed) {
  const Tokenizer tokenizer = load_json(json::parse(R"({"model": {"type": "Unigram", "unk_id": 0,
      "vocab": [["<unk>", 0], ["\u2581a", -1], ["\u2581b", -1], ["c", -1]]},
      "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                                                              {"type": "Metaspace", "replacement": "\u2581"}]},
      "decoder": {"type": "Metaspace", "replacement": "\u2581"}})"));
  const std::vector<ByteRange> ranges{{4, 5}};
  EXPECT_THAT(*tokens_in_ranges(tokenizer, "a\n  bc b", tokenizer.encode("a\n  bc b"), ranges), ElementsAre(0, 1, 0, 0));
}

TEST(TokensInRanges, WordPieceTokensHaveTheirPlaces) {
  const Tokenizer tokenizer = load_json(json::parse(R"({"model": {"type": "WordPiece", "unk_token": "[UNK]",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
      "vocab": {"[UNK]": 0, "a": 1, "##b": 2, ".": 3}},
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}})"));
  const std::vector<ByteRange> ranges{{1, 2}, {4, 5}};
  EXPECT_THAT(*tokens_in_ranges(tokenizer, "ab  a.", tokenizer.encode("ab  a."), ranges), ElementsAre(0, 1, 1, 0));
}

// As those of Phi-3: <end> takes in the line break behind it, and a text begins with a space that is not there.
json tokenizer_with_taken_space() {
  return json::parse(R"({"model": {"type": "BPE", "merges": [["\u2581", "a"]],
      "vocab": {"a": 0, "b": 1, "\u2581": 2, "\u2581a": 3}},
      "added_tokens": [{"id": 4, "content": "<end>", "rstrip": true, "special": true},
                       {"id": 5, "content": "<user>", "rstrip": true, "special": true}],
      "normalizer": {"type": "Prepend", "prepend": "\u2581"},
      "decoder": {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}})");
}

TEST(TokensInRanges, ATokenBehindALineBreakThatWasTakenInIsNotOfTheTurnBefore) {
  const Tokenizer tokenizer = load_json(tokenizer_with_taken_space());
  const std::string text = "<user>\na<end>\n<user>\na";
  const std::vector<ByteRange> ranges{{7, 14}};  // up to the line break
  EXPECT_THAT(tokenizer.encode(text), ElementsAre(5, 3, 4, 5, 3));
  EXPECT_THAT(*tokens_in_ranges(tokenizer, text, tokenizer.encode(text), ranges), ElementsAre(0, 1, 1, 0, 0));
}

TEST(TokensInRanges, ASpaceThatWasPutBeforeATextIsOfIt) {
  const Tokenizer tokenizer = load_json(tokenizer_with_taken_space());
  const std::string text = "<user>\nb<end>\n<user>\nb";
  const std::vector<ByteRange> ranges{{7, 14}};
  EXPECT_THAT(tokenizer.encode(text), ElementsAre(5, 2, 1, 4, 5, 2, 1));
  EXPECT_THAT(*tokens_in_ranges(tokenizer, text, tokenizer.encode(text), ranges), ElementsAre(0, 1, 1, 1, 0, 0, 0));
}

TEST(TokensInRanges, TokensOfAnotherTextAreNotPlaced) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  const std::vector<int64_t> ids{'a', 'x', 'c'};
  const std::vector<ByteRange> ranges{{2, 3}};
  EXPECT_FALSE(tokens_in_ranges(tokenizer, "abc", ids, ranges).has_value());
}

TEST(TokensInRanges, NoTokensHaveNoMarks) { EXPECT_TRUE(tokens_in_ranges(load_json(small_tokenizer()), "", {}, {})->empty()); }

}  // namespace
}  // namespace sluice::text::token_offsets_test
