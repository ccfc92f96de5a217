// Small tokenizers of every family against the `tokenizers` package: tests/oracles/tokenizer_reference.py.
#include <gtest/gtest.h>

#include "base/text/strings.h"
#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text::tokenizer_families_test {
namespace {

struct Family {
  std::string name;
  json tokenizer;
  json texts;
  json ids;
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

std::vector<Family> families() {
  std::vector<Family> result;
  const std::string file = read_file(golden_tokenizer_folder() / "families.jsonl");
  for (const std::string& line : split(std::string(trim(file)), '\n')) {
    json family = json::parse(line);
    result.push_back({family["name"], family["tokenizer"], family["texts"], family["ids"]});
  }
  return result;
}

class TokenizerFamily : public testing::TestWithParam<Family> {};

TEST_P(TokenizerFamily, GivesTheIdsAndTextsOfTheReference) {
  const Tokenizer tokenizer = load_json(GetParam().tokenizer);
  for (const json& expected : GetParam().texts) {
    const auto ids = tokenizer.encode(expected.at("text").get<std::string>(), true);
    EXPECT_EQ(json(ids), expected.at("ids")) << expected.at("text");
    EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << expected.at("text");
  }
}

TEST_P(TokenizerFamily, DecodesAnyIdsAsTheReference) {
  const Tokenizer tokenizer = load_json(GetParam().tokenizer);
  for (const json& expected : GetParam().ids) {
    const auto ids = expected.at("ids").get<std::vector<int64_t>>();
    EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << expected.at("ids");
    EXPECT_EQ(json(tokenizer.decode(ids, true)), expected.at("skipped")) << expected.at("ids");
  }
}

// A quadratic step anywhere would take hours here and run into the time limit of the test.
TEST_P(TokenizerFamily, TakesALongTextOfAnything) {
  const Tokenizer tokenizer = load_json(GetParam().tokenizer);
  for (const std::string unit : {"a", " ", "\n", "\u0301", "\u0323\u0301", "<|", "<", "\U0001F469\u200D", "9", "\u2581",
                                 "x\u2581", "\u3042", "-", "it's", "\xFF"}) {
    std::string text;
    while (text.size() < kLongText) text += unit;
    const auto ids = tokenizer.encode(text, true);
    EXPECT_LE(ids.size(), 6 * text.size()) << text.substr(0, 4);  // a byte that is no text counts as a character of three
    EXPECT_TRUE(is_utf8(tokenizer.decode(ids))) << text.substr(0, 4);
  }
}

std::string family_name(const testing::TestParamInfo<Family>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerFamily, testing::ValuesIn(families()), family_name);

}  // namespace
}  // namespace sluice::text::tokenizer_families_test
