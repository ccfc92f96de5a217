#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/byte_trie.h"

namespace sluice::text {

/// All that a WordPiece model needs to know.
struct WordPieceRules {
  std::vector<std::pair<std::string, int32_t>> tokens;  // and their ids
  std::string continuing_prefix;                        // begins each token that does not begin a word
  int32_t unknown = 0;                                  // stands for a whole word that tokens do not make up
  size_t most_characters = 100;                         // a longer word is unknown
};

/// The longest token that begins a word, then the longest that goes on with it, and so on (Wu et al. 2016, "Google's Neural
/// Machine Translation System", section 4.1). Immutable: const use from many threads.
class WordPiece {
 public:
  explicit WordPiece(const WordPieceRules& rules);

  /// The ids of `word`, well-formed UTF-8, in place of `ids`.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  ByteTrie tokens_;
  int32_t continuing_;  // the node after the prefix
  int32_t unknown_;
  size_t most_characters_;
};

}  // namespace sluice::text
