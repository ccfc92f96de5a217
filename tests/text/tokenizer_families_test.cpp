// Small tokenizers of every family against the `tokenizers` package: tests/oracles/tokenizer_reference.py.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text {
namespace {

std::vector<json> families() {
  std::vector<json> result;
  const std::string file = read_file(golden_tokenizer_folder() / "families.jsonl");
  for (const std::string& line : split(std::string(trim(file)), '\n')) result.push_back(json::parse(line));
  return result;
}

class TokenizerFamily : public testing::TestWithParam<json> {};

TEST_P(TokenizerFamily, GivesTheIdsAndTextsOfTheReference) {
  const Tokenizer tokenizer = load_json(GetParam().at("tokenizer"));
  for (const json& expected : GetParam().at("texts")) {
    const auto ids = tokenizer.encode(expected.at("text").get<std::string>(), true);
    EXPECT_EQ(json(ids), expected.at("ids")) << expected.at("text");
    EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << expected.at("text");
  }
}

TEST_P(TokenizerFamily, DecodesAnyIdsAsTheReference) {
  const Tokenizer tokenizer = load_json(GetParam().at("tokenizer"));
  for (const json& expected : GetParam().at("ids")) {
    const auto ids = expected.at("ids").get<std::vector<int64_t>>();
    EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << expected.at("ids");
    EXPECT_EQ(json(tokenizer.decode(ids, true)), expected.at("skipped")) << expected.at("ids");
  }
}

// A quadratic step anywhere would take hours here and run into the time limit of the test.
TEST_P(TokenizerFamily, TakesAMegabyteOfAnything) {
  const Tokenizer tokenizer = load_json(GetParam().at("tokenizer"));
  constexpr size_t kBytes = 1 << 20;
  for (const std::string unit : {"a", " ", "\n", "\u0301", "\u0323\u0301", "<|", "<", "\U0001F469\u200D", "9", "\u2581",
                                 "x\u2581", "\u3042", "-", "it's", "\xFF"}) {
    std::string text;
    while (text.size() < kBytes) text += unit;
    const auto ids = tokenizer.encode(text, true);
    EXPECT_LE(ids.size(), 3 * text.size() + 2) << json(unit);  // \xFF counts as U+FFFD, which may be three bytes
    EXPECT_TRUE(is_utf8(tokenizer.decode(ids)));
  }
}

std::string family_name(const testing::TestParamInfo<json>& info) {
  std::string name = info.param.at("name");
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerFamily, testing::ValuesIn(families()), family_name);

}  // namespace
}  // namespace sluice::text
