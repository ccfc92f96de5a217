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

std::string family_name(const testing::TestParamInfo<json>& info) {
  std::string name = info.param.at("name");
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerFamily, testing::ValuesIn(families()), family_name);

}  // namespace
}  // namespace sluice::text
