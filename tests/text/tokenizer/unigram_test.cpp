#include "text/tokenizer/unigram.h"

#include <gtest/gtest.h>

namespace sluice::text::unigram_test {
namespace {

using Ids = std::vector<int32_t>;

Ids encoded(const UnigramRules& rules, std::string_view word) {
  Unigram::Workspace workspace;
  Ids ids;
  Unigram(rules).encode(word, workspace, ids);
  return ids;
}

// The example in the documentation of the `tokenizers` package.
TEST(Unigram, TakesTheTokensWithTheHighestSumOfScores) {
  const UnigramRules rules{
      .pieces = {{"<unk>", 0}, {"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}, {"cd", 1}, {"ab", 2}, {"abc", 5}, {"abcd", 10}}};
  EXPECT_EQ(encoded(rules, "abcdacdxx"), (Ids{8, 1, 5, 0}));
}

TEST(Unigram, OfEqualSumsTheLastTokenIsTheLongest) {
  EXPECT_EQ(encoded({.pieces = {{"<unk>", 0}, {"a", -1}, {"aa", -1}}}, "aaa"), (Ids{1, 2}));
  EXPECT_EQ(encoded({.pieces = {{"<unk>", 0}, {"a", -1}, {"aa", -2}}}, "aa"), (Ids{2}));
}

TEST(Unigram, ARunOfUnknownCharactersIsOneToken) {
  const UnigramRules rules{.pieces = {{"a", -1}, {"?", -2}, {"<unk>", -3}}, .unknown = 2};
  EXPECT_EQ(encoded(rules, "a\u00e9\u4e16a"), (Ids{0, 2, 0}));
  EXPECT_EQ(encoded(rules, "x<unk>x"), (Ids{2})) << "its own name is part of the run";
}

TEST(Unigram, BytesSpellARunOnlyIfAllOfThemHaveATokenEach) {
  const UnigramRules rules{.pieces = {{"<unk>", 0}, {"a", -1}, {"<0xC3>", 0}, {"<0xA9>", 0}}, .byte_fallback = true};
  EXPECT_EQ(encoded(rules, "a\u00e9a"), (Ids{1, 2, 3, 1}));
  EXPECT_EQ(encoded(rules, "\u00e9\u00e8"), (Ids{0})) << "U+00E8 is C3 A8";
}

TEST(Unigram, OfEqualTokensTheLastCounts) {
  EXPECT_EQ(encoded({.pieces = {{"<unk>", 0}, {"a", -9}, {"aa", -3}, {"a", -1}}}, "aa"), (Ids{3, 3}));
}

TEST(Unigram, NothingHasNoTokens) { EXPECT_TRUE(encoded({.pieces = {{"<unk>", 0}}}, "").empty()); }

}  // namespace
}  // namespace sluice::text::unigram_test
