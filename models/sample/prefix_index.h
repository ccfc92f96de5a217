#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sluice::models {

/// Finds the KV block that holds the keys and values of a piece of a prompt, given all before it. A prompt is cut into pieces of
/// block_size tokens and a rest. A piece is named by its parent, the piece before it, and its own tokens; both are compared, not
/// only their hash, and a parent's number is never given twice, so that what is found stands for that very prefix.
///
/// At most one piece a block. Allocates in its constructor alone. Not thread-safe.
class PrefixIndex {
 public:
  static constexpr uint64_t kRoot = 0;  // the parent of a prompt's first piece

  struct Piece {
    uint64_t number = kRoot;  // as the parent of the piece after it
    int32_t block = 0;
  };

  PrefixIndex(int64_t blocks, int64_t block_size);

  /// The piece of `tokens` (1 to block_size) after `parent`.
  std::optional<Piece> find(uint64_t parent, std::span<const int64_t> tokens) const;

  /// Says that `block`, which holds no piece, holds this one, which no other block holds.
  Piece insert(uint64_t parent, std::span<const int64_t> tokens, int32_t block);

  /// The block's contents are overwritten; nothing happens when it holds no piece.
  void forget(int32_t block);

  bool holds(int32_t block) const { return entries_[static_cast<size_t>(block)].number != kRoot; }

 private:
  struct Entry {
    uint64_t number = kRoot;  // kRoot: the block holds no piece
    uint64_t parent = kRoot;
    int64_t size = 0;   // tokens
    int32_t next = -1;  // block in the same bucket
    size_t bucket = 0;
  };

  size_t bucket_of(uint64_t parent, std::span<const int64_t> tokens) const;
  std::span<const int64_t> tokens_of(int32_t block) const;

  int64_t block_size_;
  uint64_t last_number_ = kRoot;
  std::vector<Entry> entries_;    // of each block
  std::vector<int64_t> tokens_;   // [blocks, block_size]
  std::vector<int32_t> buckets_;  // the first block of each; -1: none
};

}  // namespace sluice::models
