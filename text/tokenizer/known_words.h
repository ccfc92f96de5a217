#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "text/tokenizer/word_table.h"

namespace sluice::text {

/// Words that one caller had encoded, with their ids, so that each is encoded once: at most a few MB. One thread at a time.
class KnownWords {
 public:
  static constexpr size_t kLongestWord = 64;  // bytes; longer ones are not remembered

  /// What a model gives belong_to(): whatever lives, no other model has it.
  using Identity = std::shared_ptr<const char>;
  static Identity new_identity() { return std::make_shared<const char>(); }

  /// Forgets the words of any other model. Before the first find() for a model.
  void belong_to(const Identity& model) {
    if (owner_ == model) return;
    owner_ = model;
    words_.clear();
  }

  /// Whether `word` is known; then `ids` are its ids, which live until the next remember(). `hash`: WordTable::hash(word).
  bool find(std::string_view word, uint64_t hash, std::span<const int32_t>& ids) const { return words_.find(word, hash, ids); }

  /// `word` is neither known nor empty, nor longer than kLongestWord.
  void remember(std::string_view word, uint64_t hash, std::span<const int32_t> ids) {
    if (words_.size() >= kMostWords || words_.bytes() >= kMostBytes) words_.clear();
    words_.insert(word, hash, ids);
  }

 private:
  static constexpr size_t kMostWords = size_t{1} << 16;
  static constexpr size_t kMostBytes = size_t{4} << 20;

  Identity owner_;
  WordTable words_;
};

}  // namespace sluice::text
