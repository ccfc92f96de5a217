#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice::text {

/// One rule of byte-pair encoding: `left` followed by `right` becomes `merged`. Its rank is its place in the list.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

/// All that byte-pair encoding needs to know.
struct BpeRules {
  std::array<int32_t, 256> byte_ids{};  // -1 where the vocabulary lacks the byte
  std::vector<BpeMerge> merges;
  std::unordered_map<std::string, int32_t> words;  // the vocabulary, written as raw bytes
  bool ignore_merges = false;                      // a word of the vocabulary is that token, whatever the merges say
  std::optional<int32_t> unknown;  // stands for a byte that the vocabulary lacks; without it such bytes are dropped
  bool fuse_unknown = false;       // one `unknown` for a run of such bytes
};

/// Byte-pair encoding of words given as raw bytes (Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword
/// Units"). Immutable: const use from many threads, each with its own Workspace. A word of n bytes takes O(n log n).
class Bpe {
 public:
  explicit Bpe(BpeRules rules);

  /// Memory that one caller reuses from word to word.
  class Workspace;

  /// Appends the ids of `word` to `ids`.
  void encode(std::string_view word, Workspace& workspace, std::vector<int64_t>& ids) const;

 private:
  struct Rule {
    uint32_t rank = 0;
    int32_t merged = -1;  // -1: no such rule
  };
  struct BytesHash {
    using is_transparent = void;
    size_t operator()(std::string_view bytes) const { return std::hash<std::string_view>{}(bytes); }
  };

  // Open addressing with linear probing over a power of two slots, at most half full: one cache line for nearly every lookup.
  class RuleTable {
   public:
    explicit RuleTable(const std::vector<BpeMerge>& merges);
    Rule find(int32_t left, int32_t right) const;

   private:
    struct Slot {
      int32_t left = -1;
      int32_t right = -1;
      Rule rule;
    };
    size_t slot_of(int32_t left, int32_t right) const;
    std::vector<Slot> slots_;
  };

  void load_symbols(std::string_view word, Workspace& workspace) const;
  void merge_symbols(Workspace& workspace) const;
  void offer_merge(Workspace& workspace, int32_t position) const;
  void keep_words_of_one_token(const std::unordered_map<std::string, int32_t>& words, bool all);

  std::array<int32_t, 256> byte_ids_;
  RuleTable rules_;
  std::optional<int32_t> unknown_;
  bool fuse_unknown_;

  // Words that encode to one token, found beforehand: most words of a text, and no cache that would have to be locked.
  std::unordered_map<std::string, int32_t, BytesHash, std::equal_to<>> one_token_words_;
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
  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;  // a heap
};

}  // namespace sluice::text
