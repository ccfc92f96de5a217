#include "text/tokenizer/tokenizer.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/text/tokenizer_fixtures.h"
#include "text/tokenizer/byte_level.h"
#include "text/unicode/utf8.h"

namespace sluice::text::tokenizer_test {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<int64_t>;

// The ids of the small tokenizer's bytes are the bytes.
Ids bytes_as_ids(std::string_view bytes) {
  Ids ids;
  for (const char byte : bytes) ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

TEST(Tokenizer, DecodesPartsOfCharactersAsReplacementCharacters) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  // Unicode 15, table 3-8: one U+FFFD for each maximal subpart.
  const std::string bytes =
      "a\xF1\x80\x80\xE1\x80\xC2"
      "b\x80"
      "c\x80\xBF"
      "d";
  EXPECT_EQ(tokenizer.decode(bytes_as_ids(bytes)), "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
  EXPECT_EQ(tokenizer.decode(bytes_as_ids("\xED\xA0\x80\xF4\x90\xF0\x9F\xA6")), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(tokenizer.decode(bytes_as_ids("\xF0\x9F\xA6\x99")), "\U0001F999");
}

TEST(Tokenizer, BytesThatAreNotUtf8CountAsReplacementCharacters) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  EXPECT_EQ(tokenizer.encode("x\xF0\x9Fy\xFF"), tokenizer.encode("x\uFFFDy\uFFFD"));
}

TEST(Tokenizer, IdsWithoutATokenHaveNoText) {
  json file = small_tokenizer();
  file["added_tokens"] = json::parse(R"([{"content": "<s>", "id": 400, "special": true}])");
  const Tokenizer tokenizer = load_json(file);
  EXPECT_EQ(tokenizer.vocab_size(), 401);
  EXPECT_EQ(tokenizer.id_to_token(350), std::nullopt);
  EXPECT_EQ(tokenizer.decode(Ids{'a', 350, -1, 400, 1'000'000, 'b'}), "a<s>b");
  EXPECT_EQ(tokenizer.decode(Ids{'a', 400, 'b'}, true), "ab");
}

TEST(Tokenizer, TokensAndIdsTranslateBothWays) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  const int64_t id = tokenizer.token_to_id("\u0120hello").value();
  EXPECT_EQ(tokenizer.id_to_token(id), "\u0120hello");
  EXPECT_EQ(tokenizer.token_bytes(id), " hello");
  EXPECT_EQ(tokenizer.token_bytes(0xE9), "\xE9");
  EXPECT_EQ(tokenizer.token_to_id("nothing"), std::nullopt);
}

TEST(Tokenizer, TellsWhichBytesItCannotEncode) {
  json file = small_tokenizer();
  EXPECT_EQ(load_json(file).uncovered_bytes(), "");
  file["model"]["vocab"].erase("z");
  file["model"]["vocab"].erase("#");
  EXPECT_EQ(load_json(file).uncovered_bytes(), "#z");
  file["model"]["unk_token"] = "?";
  EXPECT_EQ(load_json(file).uncovered_bytes(), "");
}

TEST(Tokenizer, EndOfSequenceIsAStringOrAnObjectOrAbsent) {
  const auto end_with = [](const std::string& config) {
    const TemporaryFolder folder;
    folder.write("tokenizer.json", small_tokenizer().dump());
    folder.write("tokenizer_config.json", config);
    return Tokenizer::load(folder.path()).end_of_sequence();
  };
  EXPECT_EQ(end_with(R"({"eos_token": "a"})"), 97);
  EXPECT_EQ(end_with(R"({"eos_token": {"content": "b", "special": true}})"), 98);
  EXPECT_EQ(end_with(R"({"eos_token": null})"), std::nullopt);
  EXPECT_EQ(end_with("{}"), std::nullopt);
  EXPECT_EQ(load_json(small_tokenizer()).end_of_sequence(), std::nullopt);
}

// transformers adds them when it loads the folder: a text would have other ids there.
TEST(Tokenizer, TokensThatOnlyFilesBesideItNameAreRefused) {
  const auto load = [](const std::string& config, const std::string& added) {
    const TemporaryFolder folder;
    folder.write("tokenizer.json", small_tokenizer().dump());
    if (!config.empty()) folder.write("tokenizer_config.json", config);
    folder.write("added_tokens.json", added);
    return Tokenizer::load(folder.path());
  };
  const auto error_with = [&](const std::string& config, const std::string& added) {
    return message_of<UserError>([&] { load(config, added); });
  };
  const std::string known = R"({"added_tokens_decoder": {"97": {"content": "a"}}})",
                    unknown = R"({"added_tokens_decoder": {"97": {"content": "a"}, "300": {"content": "<new>"}}})";
  EXPECT_NO_THROW(load(known, R"({"<new>": 300})"));  // of which nothing is read then
  EXPECT_NO_THROW(load("{}", R"({"a": 97})"));
  EXPECT_THAT(error_with(unknown, "{}"), HasSubstr("added_tokens_decoder.300.content: token \"<new>\" is not in "));
  for (const char* config : {"{}", ""})  // with nothing in it, and not there
    EXPECT_THAT(error_with(config, R"({"<new>": 300})"), HasSubstr("added_tokens.json: <new>: token \"<new>\" is not in "));
  EXPECT_THAT(error_with(R"({"added_tokens_decoder": []})", "{}"), HasSubstr("an object of id to token was expected here"));
}

TEST(Tokenizer, IsUsedFromManyThreadsAtOnce) {
  const Tokenizer tokenizer = load_json(small_tokenizer());
  const std::string text = "hello 123 abc -- caf\u00e9 \U0001F999\n";
  const Ids expected = tokenizer.encode(text);
  std::vector<int> wrong(4, 0);
  {
    std::vector<std::jthread> threads;
    for (int& count : wrong) {
      threads.emplace_back([&] {
        for (int i = 0; i < 500; ++i) count += tokenizer.encode(text) != expected || tokenizer.decode(expected) != text;
      });
    }
  }
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

// White space that one token stripped is not stripped again, and not looked at again: a token before each blank stays linear.
TEST(Tokenizer, StrippingTokensShareTheirWhiteSpaceInLinearTime) {
  json file = small_tokenizer();
  file["added_tokens"] = json::parse(R"([{"content": "\n", "id": 300, "rstrip": true, "lstrip": true}])");
  const Tokenizer tokenizer = load_json(file);
  EXPECT_EQ(tokenizer.encode(std::string(1 << 20, '\n')).size(), size_t{1} << 20);
}

TEST(ByteLevel, AlphabetIsOneToOne) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const std::string spelled = to_byte_alphabet(all);
  EXPECT_EQ(count_code_points(spelled), 256u);
  EXPECT_EQ(from_byte_alphabet(spelled), all);
  EXPECT_EQ(to_byte_alphabet(" \n\xAD\xE9!"), "\u0120\u010A\u0143\u00E9!");  // as in GPT-2's vocabulary
}

TEST(ByteLevel, OtherCharactersAreNotInTheAlphabet) {
  EXPECT_EQ(from_byte_alphabet("a b"), std::nullopt);
  EXPECT_EQ(from_byte_alphabet("\u0144"), std::nullopt);
  EXPECT_EQ(from_byte_alphabet("\u4E2D"), std::nullopt);
  EXPECT_EQ(from_byte_alphabet("\u00AD"), std::nullopt);
}

}  // namespace
}  // namespace sluice::text::tokenizer_test
