// Whatever is wrong with a tokenizer file is said with file and key; nothing crashes, hangs or asks for unbounded memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/strings.h"
#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text::tokenizer_malformed_test {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    load_text(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// The error of the small tokenizer with the value at `pointer` replaced.
std::string error_with(const char* pointer, const json& value) {
  json tokenizer = small_tokenizer();
  tokenizer[json::json_pointer(pointer)] = value;
  return error_of(tokenizer.dump());
}

std::string error_without(const char* key) {
  json tokenizer = small_tokenizer();
  tokenizer.erase(key);
  return error_of(tokenizer.dump());
}

json steps(const char* key, const json& list) { return {{"type", "Sequence"}, {key, list}}; }

json added_token(const std::string& content, int64_t id) { return {{"content", content}, {"id", id}, {"special", true}}; }

TEST(MalformedTokenizer, MissingFileIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THROW(
      try { Tokenizer::load(folder.path()); } catch (const UserError& error) {
        EXPECT_THAT(error.what(), HasSubstr("tokenizer.json"));
        throw;
      },
      UserError);
}

TEST(MalformedTokenizer, BrokenJsonIsPlaced) {
  EXPECT_THAT(error_of("{\"model\":\n  {\"type\": BPE}}"), HasSubstr("tokenizer.json:2:12: this is not valid JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("tokenizer.json:1:1: this is not valid JSON"));
}

TEST(MalformedTokenizer, ANumberThatNoDoubleHoldsIsRefused) {
  EXPECT_THAT(error_of("{\"version\": 1e999}"), HasSubstr("tokenizer.json holds a number that is too large"));
}

TEST(MalformedTokenizer, DeepNestingIsRefused) {
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("tokenizer.json"));
  EXPECT_THAT(error_of(std::string(1000, '[') + std::string(1000, ']')), HasSubstr("nests deeper than 512 levels"));
}

TEST(MalformedTokenizer, UnsupportedPartsAreNamedWithWhatIsSupported) {
  EXPECT_THAT(error_with("/normalizer", {{"type", "Old"}}),
              HasSubstr("tokenizer.json: normalizer: normalizer type \"Old\" is not supported; supported: null, NFC, NFD, NFKC"));
  EXPECT_THAT(
      error_with("/normalizer", json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Old"}]})")),
      HasSubstr("normalizer.normalizers[1]: normalizer type \"Old\" is not supported"));
  EXPECT_THAT(error_with("/model/type", "Characters"),
              HasSubstr("model: model type \"Characters\" is not supported; supported: BPE, Unigram, WordPiece, WordLevel"));
  EXPECT_THAT(error_with("/model/dropout", 0.1), HasSubstr("model.dropout: dropout of merges is not supported"));
  EXPECT_THAT(error_with("/pre_tokenizer/type", "UnicodeScripts"),
              HasSubstr("pre_tokenizer type \"UnicodeScripts\" is not supported"));
  EXPECT_THAT(error_with("/pre_tokenizer", steps("pretokenizers", {{{"type", "ByteLevel"}}, {{"type", "ByteLevel"}}})),
              HasSubstr("pre_tokenizer.pretokenizers[1]: a second ByteLevel is not supported"));
  EXPECT_THAT(error_with("/decoder/type", "CTC"), HasSubstr("decoder: decoder type \"CTC\" is not supported"));
  EXPECT_THAT(error_with("/post_processor", {{"type", "Other"}}), HasSubstr("post_processor type \"Other\""));
}

TEST(MalformedTokenizer, AUnigramModelIsChecked) {
  const json good = json::parse(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5]]}})");
  ASSERT_EQ(error_of(good.dump()), "accepted");
  const auto error = [&](const char* pointer, const json& value) {
    json tokenizer = good;
    tokenizer[json::json_pointer(pointer)] = value;
    return error_of(tokenizer.dump());
  };
  EXPECT_THAT(error("/model/unk_id", 2), HasSubstr("model.unk_id: no token has id 2"));
  EXPECT_THAT(error("/model/unk_id", nullptr), HasSubstr("model.unk_id: an integer was expected here"));
  EXPECT_THAT(error("/model/vocab/1", json::array({"a"})), HasSubstr("model.vocab: entry [1] must be [TOKEN, SCORE]"));
  EXPECT_THAT(error("/model/vocab/1/1", "x"), HasSubstr("model.vocab: entry [1] must be [TOKEN, SCORE]"));
  EXPECT_THAT(error("/model/vocab/1/0", ""), HasSubstr("model.vocab: entry [1]: the empty string cannot be a token"));
  EXPECT_THAT(error("/model/vocab", {{"a", 0}}), HasSubstr("model.vocab: a list of [TOKEN, SCORE] was expected here"));
  EXPECT_THAT(error("/pre_tokenizer", {{"type", "ByteLevel"}}), HasSubstr("a Unigram model after ByteLevel is not supported"));
  EXPECT_THAT(error("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAA"}}),
              HasSubstr("normalizer.precompiled_charsmap: a charsmap of SentencePiece in base64 was expected here"));
  EXPECT_THAT(error("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAA"}}),
              HasSubstr("normalizer.precompiled_charsmap: the charsmap is malformed"));
}

TEST(MalformedTokenizer, AWordPieceModelIsChecked) {
  const json good = json::parse(R"({"model": {"unk_token": "[UNK]", "continuing_subword_prefix": "##",
      "max_input_chars_per_word": 100, "vocab": {"[UNK]": 0, "a": 1}}})");
  ASSERT_EQ(error_of(good.dump()), "accepted") << "older files have no type";
  const auto error = [&](const char* pointer, const json& value) {
    json tokenizer = good;
    tokenizer["model"]["type"] = "WordPiece";
    tokenizer[json::json_pointer(pointer)] = value;
    return error_of(tokenizer.dump());
  };
  EXPECT_THAT(error("/model/unk_token", "[NO]"), HasSubstr("model.unk_token: token \"[NO]\" is not in model.vocab"));
  EXPECT_THAT(error("/model/max_input_chars_per_word", -1), HasSubstr("model.max_input_chars_per_word: a number of characters"));
  EXPECT_THAT(error("/model/continuing_subword_prefix", nullptr), HasSubstr("a string was expected here"));
  EXPECT_THAT(error("/model/vocab", json::array()), HasSubstr("model.vocab: an object of token to id was expected here"));
  EXPECT_THAT(error("/decoder", {{"type", "WordPiece"}}), HasSubstr("decoder: the key \"prefix\" is missing"));
  EXPECT_THAT(error("/pre_tokenizer", {{"type", "CharDelimiterSplit"}, {"delimiter", "ab"}}),
              HasSubstr("pre_tokenizer.delimiter: one character was expected here"));
}

TEST(MalformedTokenizer, AWordLevelModelIsChecked) {
  const json good = json::parse(R"({"model": {"unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1}}})");
  ASSERT_EQ(error_of(good.dump()), "accepted") << "older files have no type";
  const auto error = [&](const char* pointer, const json& value) {
    json tokenizer = good;
    tokenizer["model"]["type"] = "WordLevel";
    tokenizer[json::json_pointer(pointer)] = value;
    return error_of(tokenizer.dump());
  };
  EXPECT_THAT(error("/model/unk_token", "[NO]"), HasSubstr("model.unk_token: token \"[NO]\" is not in model.vocab"));
  EXPECT_THAT(error("/model/unk_token", nullptr), HasSubstr("model.unk_token: a string was expected here"));
  EXPECT_THAT(error("/model/vocab", json::array()), HasSubstr("model.vocab: an object of token to id was expected here"));
  EXPECT_THAT(error("/pre_tokenizer", {{"type", "ByteLevel"}}), HasSubstr("a WordLevel model after ByteLevel is not supported"));
}

TEST(MalformedTokenizer, ByteFallbackWithASuffixIsRefused) {
  json tokenizer = small_tokenizer();
  tokenizer["model"]["byte_fallback"] = true;
  tokenizer["model"]["end_of_word_suffix"] = "</w>";
  EXPECT_THAT(error_of(tokenizer.dump()), HasSubstr("model.byte_fallback: byte fallback with a subword prefix or suffix"));
}

TEST(MalformedTokenizer, SettingsOfStepsAreChecked) {
  const auto metaspace = [](const json& settings) {
    json step = {{"type", "Metaspace"}, {"replacement", "_"}};
    step.update(settings);
    return error_with("/pre_tokenizer", step);
  };
  EXPECT_THAT(metaspace({{"replacement", "__"}}), HasSubstr("pre_tokenizer.replacement: one character was expected here"));
  EXPECT_THAT(metaspace({{"replacement", ""}}), HasSubstr("one character"));
  EXPECT_THAT(metaspace({{"prepend_scheme", "last"}}), HasSubstr("prepend_scheme \"last\" is not supported"));
  EXPECT_THAT(metaspace({{"prepend_scheme", "first"}, {"add_prefix_space", false}}),
              HasSubstr("add_prefix_space: false contradicts prepend_scheme"));
  EXPECT_THAT(error_with("/decoder", {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}),
              HasSubstr("decoder.start: a number of characters was expected here"));
  EXPECT_THAT(error_with("/decoder", {{"type", "Strip"}, {"content", "ab"}, {"start", 1}, {"stop", 0}}),
              HasSubstr("decoder.content: one character"));
  EXPECT_THAT(error_with("/decoder", {{"type", "BPEDecoder"}, {"suffix", ""}}), HasSubstr("decoder.suffix"));
  EXPECT_THAT(error_with("/normalizer", {{"type", "Replace"}, {"pattern", {{"Regex", "["}}}, {"content", ""}}),
              HasSubstr("normalizer.pattern: the regular expression is not valid"));
  EXPECT_THAT(error_with("/post_processor", {{"type", "BertProcessing"}, {"cls", {"a", 97}}, {"sep", {"b", 9999}}}),
              HasSubstr("post_processor.sep[1]: no token has id 9999"));
}

TEST(MalformedTokenizer, TooManyStepsAreRefused) {
  EXPECT_THAT(error_with("/normalizer", steps("normalizers", json::array_t(1000, {{"type", "NFC"}}))),
              HasSubstr("the normalizer has more than 64 steps"));
  EXPECT_THAT(error_with("/pre_tokenizer", steps("pretokenizers", json::array_t(1000, {{"type", "WhitespaceSplit"}}))),
              HasSubstr("the pre_tokenizer has more than 64 steps"));
  EXPECT_THAT(error_with("/decoder", steps("decoders", json::array_t(1000, {{"type", "Fuse"}}))),
              HasSubstr("the decoder has more than 64 steps"));
}

// Each step doubles the text: without a limit forty of them would fill any memory.
TEST(MalformedTokenizer, StepsThatMultiplyATextGiveUp) {
  const json doubling = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  json tokenizer = small_tokenizer();
  tokenizer["normalizer"] = steps("normalizers", json::array_t(40, doubling));
  const Tokenizer normalizing = load_json(tokenizer);
  EXPECT_THROW(normalizing.encode("aaaa"), UserError);

  EXPECT_THAT(error_with("/decoder", steps("decoders", json::array_t(40, doubling))),
              HasSubstr("decoder.decoders[8]: this makes"));
}

TEST(MalformedTokenizer, MissingPartsAreNamed) {
  EXPECT_THAT(error_without("model"), HasSubstr("tokenizer.json: the key \"model\" is missing"));
  EXPECT_THAT(error_with("/model", json::object()), HasSubstr("model: the key \"vocab\" is missing"));
  EXPECT_THAT(error_with("/added_tokens", json::parse("[{\"id\": 1}]")),
              HasSubstr("added_tokens[0]: the key \"content\" is missing"));
}

TEST(MalformedTokenizer, WrongTypesAreNamed) {
  EXPECT_THAT(error_with("/model/vocab/a", "97"), HasSubstr("model.vocab: token \"a\" has no integer id"));
  EXPECT_THAT(error_with("/model/merges", 3), HasSubstr("model.merges: a list was expected here"));
  EXPECT_THAT(error_with("/added_tokens", 3), HasSubstr("added_tokens: a list was expected here"));
  EXPECT_THAT(error_with("/pre_tokenizer/use_regex", 1), HasSubstr("pre_tokenizer.use_regex: true or false was expected here"));
  EXPECT_THAT(error_of("[]"), HasSubstr("tokenizer.json: an object was expected here, this is array"));
}

TEST(MalformedTokenizer, MergesMustNameKnownTokens) {
  EXPECT_THAT(error_with("/model/merges/1", "l \xC4\xB2"),
              HasSubstr("merge 1 (\"l\", \"\xC4\xB2\") needs token \"l\xC4\xB2\", which is not in model.vocab"));
  EXPECT_THAT(error_with("/model/merges/1", "l l l"), HasSubstr("model.merges: merge 1 must be \"LEFT RIGHT\""));
  EXPECT_THAT(error_with("/model/merges/1", json::array({"l"})), HasSubstr("model.merges: merge 1 must be"));
}

TEST(MalformedTokenizer, IdsMustBeUniqueAndInRange) {
  EXPECT_THAT(error_with("/model/vocab/a", 98), HasSubstr("id 98 is given to both \"a\" and \"b\""));
  EXPECT_THAT(error_with("/model/vocab/a", -1), HasSubstr("token \"a\" has id -1, which is out of range"));
  EXPECT_THAT(error_with("/model/vocab/a", 4'000'000'000), HasSubstr("out of range"));
  EXPECT_THAT(error_with("/model/vocab/a", UINT64_MAX), HasSubstr("out of range"));
  EXPECT_THAT(error_with("/added_tokens", json::array({added_token("<s>", 97)})),
              HasSubstr("id 97 is given to both \"a\" and \"<s>\""));
  EXPECT_THAT(error_with("/added_tokens", json::array({added_token("a", 3)})),
              HasSubstr("token \"a\" has id 3 here, but 97 before"));
  EXPECT_THAT(error_with("/added_tokens", json::array({added_token("<s>", INT64_MAX)})), HasSubstr("out of range"));
  EXPECT_THAT(error_with("/added_tokens", json::array({added_token("", 999)})), HasSubstr("the empty string cannot be a token"));
}

TEST(MalformedTokenizer, BadPatternsAreNamed) {
  const auto split_by = [](const json& pattern) {
    return json{
        {"type", "Sequence"},
        {"pretokenizers", {{{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}}, {{"type", "ByteLevel"}}}}};
  };
  EXPECT_THAT(
      error_with("/pre_tokenizer", split_by({{"Regex", "(a"}})),
      HasSubstr(
          "pre_tokenizer.pretokenizers[0].pattern: the regular expression is not valid: end pattern with unmatched parenthesis"));
  EXPECT_THAT(error_with("/pre_tokenizer", split_by("a")), HasSubstr("a pattern is {\"Regex\": ...} or {\"String\": ...}"));
}

TEST(MalformedTokenizer, APatternThatBacktracksWithoutBoundGivesUp) {
  json tokenizer = small_tokenizer();
  tokenizer["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "(a|aa)+$"}, "behavior": "Isolated"}, {"type": "ByteLevel"}]})");
  const Tokenizer loaded = load_json(tokenizer);
  EXPECT_THROW(loaded.encode(std::string(100, 'a') + "!"), UserError);
}

TEST(MalformedTokenizer, EndOfSequenceMustBeAToken) {
  const TemporaryFolder folder;
  folder.write("tokenizer.json", small_tokenizer().dump());
  folder.write("tokenizer_config.json", R"({"eos_token": "<eos>"})");
  try {
    Tokenizer::load(folder.path());
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tokenizer_config.json: eos_token: token \"<eos>\" is not in"));
  }
}

// Every value of the file in turn becomes null, a number, a string, a list, an object: it loads or is refused, never anything
// else.
TEST(MalformedTokenizer, AnyValueOfAnyTypeIsAcceptedOrRefused) {
  json full = small_tokenizer();
  full["added_tokens"] = json::array({added_token("<s>", 300)});
  full["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFC"}]})");
  full["post_processor"] =
      json::parse(R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}],
      "special_tokens": {"<s>": {"ids": [300]}}})");
  ASSERT_EQ(error_of(full.dump()), "accepted");

  int refused = 0;
  const json flat = full.flatten();
  std::vector<std::string> pointers;
  for (const auto& [pointer, value] : flat.items()) {
    const bool is_ordinary_byte = pointer.starts_with("/model/vocab/") && value.is_number() && value.get<int>() > 4;
    for (std::string path = pointer; !is_ordinary_byte && !path.empty(); path.resize(path.rfind('/'))) pointers.push_back(path);
  }
  std::sort(pointers.begin(), pointers.end());
  pointers.erase(std::unique(pointers.begin(), pointers.end()), pointers.end());
  for (const std::string& pointer : pointers) {
    for (const json& value :
         {json(nullptr), json(-7), json(1e300), json("x"), json::array({1, nullptr}), json{{"type", "Sequence"}}}) {
      refused += error_with(pointer.c_str(), value) != "accepted";
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(MalformedTokenizer, EveryTruncationIsRefused) {
  const std::string text = small_tokenizer().dump();
  for (size_t length = 0; length < text.size(); length += 7) EXPECT_NE(error_of(text.substr(0, length)), "accepted") << length;
}

}  // namespace
}  // namespace sluice::text::tokenizer_malformed_test
