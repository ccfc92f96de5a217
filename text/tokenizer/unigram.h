#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/byte_trie.h"
#include "text/tokenizer/fallback_bytes.h"

namespace sluice::text {

/// All that a unigram model needs to know.
struct UnigramRules {
  // [id]: token and score, or minus infinity for what no text may say. Of equal tokens the last one counts.
  std::vector<std::pair<std::string, double>> pieces;
  int32_t unknown = 0;            // stands for a run of characters that no token covers
  bool byte_fallback = false;     // unless the tokens <0x00> to <0xFF> spell that run
  bool single_precision = false;  // sums are rounded as SentencePiece rounds them
};

/// The tokens of a word whose scores have the highest sum (Kudo 2018, "Subword Regularization", section 3).
/// Immutable: const use from many threads, each with its own Workspace. A word of n bytes takes O(n) times the length of the
/// longest token, and 16 n bytes.
class Unigram {
 public:
  explicit Unigram(const UnigramRules& rules);

  /// Memory that one caller reuses from word to word.
  class Workspace;

  /// The ids of `word`, well-formed UTF-8, in place of `ids`.
  void encode(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const;

 private:
  void find_best_paths(std::string_view word, Workspace& workspace) const;
  void add_unknown(std::string_view run, std::vector<int32_t>& ids) const;

  ByteTrie tokens_;
  std::vector<double> scores_;  // [id]
  double unknown_score_;
  bool single_precision_;
  int32_t unknown_;
  FallbackBytes fallback_;
};

class Unigram::Workspace {
 private:
  friend class Unigram;

  // The best path that ends at a byte of the word.
  struct Path {
    double score = 0;
    int32_t begin = -1;  // of its last token; -1: there is no path
    int32_t id = -1;     // of that token
  };
  struct Token {
    int32_t begin, end, id;
  };

  std::vector<Path> paths;
  std::vector<Token> tokens;  // of the best one, last first
};

}  // namespace sluice::text
