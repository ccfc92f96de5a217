#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/bpe_symbols.h"
#include "text/tokenizer/known_words.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/word_table.h"

namespace sluice::text {

/// All that byte-pair encoding needs to know.
struct BpeRules {
  BpeSymbols::Settings symbols;
  std::vector<BpeMerge> merges;
  std::unordered_map<std::string, int32_t> words;  // the vocabulary; written as raw bytes if byte-level
  bool ignore_merges = false;                      // a word of the vocabulary is that token, whatever the merges say
  bool cuts_before_blanks = false;                 // no merge joins a SentencePiece blank to what is before it
};

/// Byte-pair encoding of words (Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units").
/// Immutable: const use from many threads, each with its own Workspace. A word of n bytes takes O(n log n).
class Bpe {
 public:
  explicit Bpe(BpeRules rules);

  /// Memory that one caller reuses from word to word, and what it remembers of them: at most a few MB.
  class Workspace;

  /// Appends the ids of `word` to `ids`. Words are well-formed UTF-8, or any bytes if byte-level.
  void encode(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const;

  /// The bytes that no token stands for, in order.
  std::string dropped_bytes() const { return symbols_.dropped_bytes(); }

 private:
  void encode_part(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const;
  void merge(std::string_view word, Workspace& workspace) const;
  void merge_short(Workspace& workspace) const;
  void merge_long(Workspace& workspace) const;
  void offer_merge(Workspace& workspace, int32_t position) const;
  void keep_words_of_one_token(const std::unordered_map<std::string, int32_t>& words);

  BpeSymbols symbols_;
  MergeTable rules_;
  KnownWords::Identity identity_ = KnownWords::new_identity();
  bool ignore_merges_;
  bool cuts_before_blanks_;

  // Words that encode to one token, found beforehand: most words of a text.
  WordTable one_token_words_;
  size_t longest_one_token_word_ = 0;
};

class Bpe::Workspace {
 private:
  friend class Bpe;

  struct Symbol {
    int32_t id = 0;  // -1: merged into the symbol before it
    int32_t previous = -1;
    int32_t next = -1;
  };
  struct Candidate {
    uint64_t order = 0;  // rank, then position: the smallest is merged first
    int32_t merged = 0;

    int32_t position() const { return static_cast<int32_t>(order & 0xFFFFFFFF); }
  };

  KnownWords known;
  std::vector<int32_t> parts;  // of the word at hand: its characters, then its tokens
  std::vector<MergeTable::Rule> rules;
  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;  // a heap
};

}  // namespace sluice::text
