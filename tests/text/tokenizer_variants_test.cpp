// Ids and texts of small tokenizers by the `tokenizers` package: tests/oracles/tokenizer_reference.py.
#include <gtest/gtest.h>

#include "tests/text/tokenizer_fixtures.h"

namespace sluice::text::tokenizer_variants_test {
namespace {

struct Variant {
  std::string name;
  json tokenizer;
  json cases;
};

std::vector<Variant> variants() {
  const json file = json::parse(read_file(golden_tokenizer_folder() / "variants.json"));
  std::vector<Variant> result;
  for (const json& variant : file.at("variants")) {
    json tokenizer = file.at("base");
    tokenizer.merge_patch(variant.at("patch"));
    result.push_back({variant.at("name"), std::move(tokenizer), variant.at("cases")});
  }
  return result;
}

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

class TokenizerVariant : public testing::TestWithParam<Variant> {};

TEST_P(TokenizerVariant, GivesTheIdsAndTextsOfTheReference) {
  const Tokenizer tokenizer = load_json(GetParam().tokenizer);
  for (const json& expected : GetParam().cases) {
    const std::string text = expected.at("text");
    const auto ids = tokenizer.encode(text, true);
    EXPECT_EQ(json(ids), expected.at("ids")) << json(text);
    EXPECT_EQ(json(tokenizer.decode(ids)), expected.at("decoded")) << json(text);
    EXPECT_EQ(json(tokenizer.decode(ids, true)), expected.value("decoded_without_special", expected.at("decoded"))) << json(text);
  }
}

std::string test_name(const testing::TestParamInfo<Variant>& info) {
  std::string name = info.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Small, TokenizerVariant, testing::ValuesIn(variants()), test_name);

}  // namespace
}  // namespace sluice::text::tokenizer_variants_test
