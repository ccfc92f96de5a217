#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/byte_trie.h"

namespace sluice::text {

/// All that a WordLevel model needs to know.
struct WordLevelRules {
  std::vector<std::pair<std::string, int32_t>> tokens;  // and their ids
  int32_t unknown = 0;                                  // of a word that is no token
};

/// A word is a token, or unknown. Immutable: const use from many threads.
class WordLevel {
 public:
  explicit WordLevel(const WordLevelRules& rules) : tokens_(rules.tokens), unknown_(rules.unknown) {}

  int32_t id_of(std::string_view word) const {
    const int32_t node = tokens_.find(word);
    const int32_t id = node == ByteTrie::kNone ? ByteTrie::kNone : tokens_.value(node);
    return id == ByteTrie::kNone ? unknown_ : id;
  }

 private:
  ByteTrie tokens_;
  int32_t unknown_;
};

}  // namespace sluice::text
