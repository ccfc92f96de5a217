// Models of SentencePiece in a folder without tokenizer.json, against SentencePiece: tests/oracles/tokenizer_reference.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/strings.h"
#include "tests/text/tokenizer_fixtures.h"
#include "text/tokenizer/stream_decoder.h"

namespace sluice::text::sentencepiece_test {
namespace {

using testing::HasSubstr;

fs::path models() { return golden_tokenizer_folder() / "sentencepiece"; }

std::string model_bytes(const std::string& name) { return read_file(models() / (name + ".model")); }

Tokenizer load_model(const std::string& name, const json& config = nullptr) {
  const TemporaryFolder folder;
  folder.write("tokenizer.model", model_bytes(name));
  if (!config.is_null()) folder.write("tokenizer_config.json", config.dump());
  return Tokenizer::load(folder.path());
}

std::string error_of(const std::string& bytes, const json& config = json::object()) {
  const TemporaryFolder folder;
  folder.write("tokenizer.model", bytes);
  folder.write("tokenizer_config.json", config.dump());
  try {
    Tokenizer::load(folder.path());
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

// One field of bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

std::string number_field(std::initializer_list<int> bytes) { return {bytes.begin(), bytes.end()}; }

TEST(SentencePiece, GivesItsIdsAndTexts) {
  size_t cases = 0;
  for (const std::string& line : split(std::string(trim(read_file(models() / "sentencepiece.jsonl"))), '\n')) {
    const json model = json::parse(line);
    const Tokenizer tokenizer = load_model(model.at("name"));
    for (const json& expected : model.at("texts")) {
      const auto ids = tokenizer.encode(expected.at("text").get<std::string>());
      EXPECT_EQ(json(ids), expected.at("ids")) << model.at("name") << expected.at("text");
      EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << model.at("name") << expected.at("text");
      StreamDecoder stream(tokenizer);
      std::string streamed;
      for (const int64_t id : ids) streamed += stream.push(id);
      EXPECT_EQ(streamed + stream.finish(), tokenizer.decode(ids));
      ++cases;
    }
  }
  EXPECT_GT(cases, 60u);
}

TEST(SentencePiece, SpecialTokensAreFoundInTextAndPutAroundItAsTheConfigSays) {
  const Tokenizer plain = load_model("llama-2");
  EXPECT_EQ(plain.token_to_id("<s>"), 1);
  EXPECT_TRUE(plain.is_special(1));
  EXPECT_EQ(plain.encode("</s>", true), (std::vector<int64_t>{2}));
  EXPECT_EQ(load_model("llama-2", {{"add_bos_token", true}, {"add_eos_token", true}}).encode("</s>", true),
            (std::vector<int64_t>{1, 2, 2}));
  EXPECT_EQ(load_model("unigram-bytes").encode("", true), (std::vector<int64_t>{2})) << "Unigram models end with it, as T5";
  EXPECT_EQ(load_model("llama-2", {{"eos_token", "</s>"}}).end_of_sequence(), 2);
}

TEST(SentencePiece, TokensOfTheConfigAreAdded) {
  const int64_t size = load_model("llama-2").vocab_size();
  const json config = {{"added_tokens_decoder",
                        {{std::to_string(size), {{"content", "<|im_start|>"}, {"special", true}}},
                         {"5", {{"content", "<|tool|>"}, {"special", false}, {"normalized", false}}}}}};
  const Tokenizer tokenizer = load_model("llama-2", config);
  EXPECT_EQ(tokenizer.encode("<|im_start|><|tool|>"), (std::vector<int64_t>{size, 5})) << "5 was left free for it";
  EXPECT_TRUE(tokenizer.is_special(size));
  EXPECT_FALSE(tokenizer.is_special(5));
}

TEST(SentencePiece, T5HasItsSentinelsBehindTheVocabulary) {
  const int64_t size = load_model("unigram-bytes").vocab_size();
  const Tokenizer tokenizer = load_model("unigram-bytes", {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", 2}});
  EXPECT_EQ(tokenizer.encode("<extra_id_0><extra_id_1>"), (std::vector<int64_t>{size + 1, size}));
  EXPECT_EQ(load_model("unigram-bytes", {{"tokenizer_class", "T5TokenizerFast"}}).vocab_size(), size + 100);
}

TEST(SentencePiece, ATokenizerJsonBesideItIsPreferred) {
  const TemporaryFolder folder;
  folder.write("spiece.model", model_bytes("llama-2"));
  EXPECT_EQ(tokenizer_file_in(folder.path()), folder.path() / "spiece.model");
  EXPECT_EQ(Tokenizer::load(folder.path()).token_to_id("</s>"), 2);
  folder.write("tokenizer.json", small_tokenizer().dump());
  EXPECT_EQ(Tokenizer::load(folder.path()).token_to_id("a"), 97);
  EXPECT_EQ(Tokenizer::load(folder.path() / "spiece.model").token_to_id("</s>"), 2);
}

TEST(SentencePiece, WhatIsNoModelIsRefused) {
  EXPECT_THAT(error_of(""), HasSubstr("tokenizer.model: this is no model of SentencePiece: it has no pieces"));
  EXPECT_THAT(error_of("version https://git-lfs.github.com/spec/v1"), HasSubstr("this is no model of SentencePiece"));
  EXPECT_THAT(error_of(field(1, field(1, "\xFF"))), HasSubstr("is not UTF-8"));
  EXPECT_THAT(error_of(field(1, field(1, "a"))), HasSubstr("has no piece for what is unknown"));
  EXPECT_THAT(error_of(field(1, field(1, "a") + number_field({3 << 3, 2})) + field(1, field(1, "a"))),
              HasSubstr("piece \"a\" is there twice"));
  EXPECT_THAT(error_of(field(1, field(1, "a") + std::string("\x15\0\0\xC0\x7F", 5))), HasSubstr("a score that is no number"));
}

TEST(SentencePiece, OtherKindsAreRefusedWithTheWayOut) {
  const std::string unknown = field(1, field(1, "<unk>") + number_field({3 << 3, 2}));
  EXPECT_EQ(error_of(unknown), "accepted");
  EXPECT_THAT(error_of(unknown + field(2, number_field({3 << 3, 4}))), HasSubstr("only models of kind unigram and bpe"));
  EXPECT_THAT(error_of(unknown + field(2, std::string("\xC0\x01\x01", 3))), HasSubstr("writes blanks otherwise"));
  EXPECT_THAT(error_of(unknown, {{"tokenizer_class", "XLMRobertaTokenizer"}}),
              HasSubstr("tokenizer_config.json: tokenizer_class: \"XLMRobertaTokenizer\" may number the pieces of"));
  EXPECT_THAT(error_of(unknown, {{"added_tokens_decoder", {{"x", json::object()}}}}), HasSubstr("\"x\" is no id"));
  EXPECT_THAT(error_of(unknown, {{"added_tokens_decoder", {{"1", json::object()}}}}),
              HasSubstr("the key \"content\" is missing"));
  EXPECT_THAT(error_of(unknown, {{"tokenizer_class", "T5Tokenizer"}, {"extra_ids", -1}}),
              HasSubstr("extra_ids: a number of tokens"));
}

TEST(SentencePiece, EveryTruncationIsRefusedOrWorks) {
  for (const char* name : {"llama-2", "unigram-bytes"}) {
    const std::string bytes = model_bytes(name);
    size_t refused = 0;
    for (size_t length = 0; length < bytes.size(); length += 97) refused += error_of(bytes.substr(0, length)) != "accepted";
    EXPECT_GT(refused, bytes.size() / 97 / 2) << name;
  }
}

}  // namespace
}  // namespace sluice::text::sentencepiece_test
