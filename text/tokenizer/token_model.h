#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer/bpe.h"
#include "text/tokenizer/known_words.h"
#include "text/tokenizer/unigram.h"
#include "text/tokenizer/word_level.h"
#include "text/tokenizer/word_piece.h"

namespace sluice::text {

/// The "model" of a tokenizer.json: makes words into ids. Immutable: const use from many threads, each with its own Workspace.
class TokenModel {
 public:
  using Rules = std::variant<BpeRules, UnigramRules, WordPieceRules, WordLevelRules>;

  explicit TokenModel(Rules rules);

  /// Memory that one caller reuses from word to word, and what it remembers of them: at most a few MB.
  class Workspace;

  /// Appends the ids of `word` to `ids`. Words are well-formed UTF-8, or any bytes if byte-level.
  void encode(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const;

  /// The bytes that no token stands for, in order.
  std::string dropped_bytes() const;

 private:
  using Kind = std::variant<Bpe, Unigram, WordPiece, WordLevel>;

  Kind kind_;
  KnownWords::Identity identity_ = KnownWords::new_identity();
};

class TokenModel::Workspace {
 private:
  friend class TokenModel;

  Bpe::Workspace bpe;  // remembers words by itself
  Unigram::Workspace unigram;
  KnownWords known;
  std::vector<int32_t> parts;
};

}  // namespace sluice::text
