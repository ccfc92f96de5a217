#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

/// Words and what ids they have: a hash table in three flat arrays, so that a lookup touches two cache lines and inserting
/// allocates nothing most of the time. Grows by itself; const use from many threads.
class WordTable {
 public:
  static uint64_t hash(std::string_view word) {
    constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
    const auto mix = [](uint64_t value) { return (value ^ value >> 32) * kFactor; };
    uint64_t hash = word.size() * kFactor;
    while (word.size() >= sizeof(uint64_t)) {
      hash = mix(hash ^ load(word, sizeof(uint64_t)));
      word.remove_prefix(sizeof(uint64_t));
    }
    hash = mix(hash ^ load(word, word.size()));
    return hash ^ hash >> 29;
  }

  /// Whether `word` is known; then `ids` are its ids, which live until the table changes.
  bool find(std::string_view word, uint64_t hash, std::span<const int32_t>& ids) const;

  /// `word` must not be known yet.
  void insert(std::string_view word, uint64_t hash, std::span<const int32_t> ids);

  size_t size() const { return size_; }
  size_t bytes() const { return letters_.size() + ids_.size() * sizeof(int32_t); }
  void clear();

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t length = 0;  // 0: empty, as no word is
    uint32_t letters = 0;
    uint32_t ids = 0;
    uint32_t count = 0;
  };

  static uint64_t load(std::string_view word, size_t size) {
    uint64_t value = 0;
    std::memcpy(&value, word.data(), size);
    return value;
  }
  void grow();

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t size_ = 0;
  std::string letters_;
  std::vector<int32_t> ids_;
};

}  // namespace sluice::text
