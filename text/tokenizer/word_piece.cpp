#include "text/tokenizer/word_piece.h"

#include "text/unicode/utf8.h"

namespace sluice::text {

WordPiece::WordPiece(const WordPieceRules& rules)
    : tokens_(rules.tokens),
      continuing_(tokens_.find(rules.continuing_prefix)),
      unknown_(rules.unknown),
      most_characters_(rules.most_characters) {}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids) const {
  ids.clear();
  const bool is_short = word.size() <= most_characters_ || count_code_points(word) <= most_characters_;
  for (size_t begin = 0; begin < word.size();) {
    size_t token_end = begin;
    int32_t longest = ByteTrie::kNone;
    int32_t node = begin == 0 ? ByteTrie::kRoot : continuing_;
    for (size_t i = begin; is_short && node != ByteTrie::kNone && i < word.size();) {
      node = tokens_.next(node, word[i++]);
      const int32_t id = node == ByteTrie::kNone ? ByteTrie::kNone : tokens_.value(node);
      if (id == ByteTrie::kNone) continue;
      longest = id;
      token_end = i;
    }
    if (longest == ByteTrie::kNone) {
      ids.assign(1, unknown_);
      return;
    }
    ids.push_back(longest);
    begin = token_end;
  }
}

}  // namespace sluice::text
