#include "text/tokenizer/first_tokens.h"

#include <algorithm>

namespace sluice::text {

std::vector<int64_t> first_tokens(const Tokenizer& tokenizer, std::string_view utf8, size_t most) {
  // Several times what a token has mostly, so that the word that is cut is after the last of them.
  constexpr size_t kBytesOfAToken = 16, kLeastBytes = 4096;
  for (size_t bytes = kLeastBytes + kBytesOfAToken * most;; bytes *= 2) {
    std::vector<int64_t> tokens = tokenizer.encode(utf8.substr(0, bytes));
    if (tokens.size() <= most && bytes < utf8.size()) continue;
    tokens.resize(std::min(tokens.size(), most));
    return tokens;
  }
}

}  // namespace sluice::text
