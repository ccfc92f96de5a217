#include "text/tokenizer/word_piece.h"

#include <gtest/gtest.h>

namespace sluice::text::word_piece_test {
namespace {

using Ids = std::vector<int32_t>;

const WordPieceRules kRules{
    .tokens =
        {{"[UNK]", 0}, {"un", 1}, {"##aff", 2}, {"##able", 3}, {"##a", 4}, {"a", 5}, {"##ffa", 6}, {"\u00e9", 7}, {"##", 8}},
    .continuing_prefix = "##",
    .most_characters = 9};

Ids encoded(std::string_view word, const WordPieceRules& rules = kRules) {
  Ids ids;
  WordPiece(rules).encode(word, ids);
  return ids;
}

TEST(WordPiece, TakesTheLongestTokenEachTime) { EXPECT_EQ(encoded("unaffable"), (Ids{1, 2, 3})); }

TEST(WordPiece, AWordThatTokensDoNotMakeUpIsUnknownAsAWhole) {
  EXPECT_EQ(encoded("unaffx"), (Ids{0}));
  EXPECT_EQ(encoded("aff"), (Ids{0})) << "##aff does not begin a word";
}

TEST(WordPiece, AWordOfMoreCharactersIsUnknown) {
  EXPECT_EQ(encoded("aaaaaaaaa"), (Ids{5, 4, 4, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(encoded("aaaaaaaaaa"), (Ids{0}));
  WordPieceRules short_words = kRules;
  short_words.most_characters = 1;
  EXPECT_EQ(encoded("\u00e9", short_words), (Ids{7})) << "characters are counted, not bytes";
}

TEST(WordPiece, WithoutAPrefixEveryTokenMayContinueAWord) {
  EXPECT_EQ(encoded("baab", {.tokens = {{"[UNK]", 0}, {"b", 1}, {"aa", 2}}}), (Ids{1, 2, 1}));
}

TEST(WordPiece, WithoutTokensThatContinueOnlyWholeWordsAreKnown) {
  const WordPieceRules rules{.tokens = {{"[UNK]", 0}, {"b", 1}}, .continuing_prefix = "##"};
  EXPECT_EQ(encoded("b", rules), (Ids{1}));
  EXPECT_EQ(encoded("bb", rules), (Ids{0}));
}

}  // namespace
}  // namespace sluice::text::word_piece_test
