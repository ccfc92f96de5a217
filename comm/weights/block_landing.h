#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "comm/parcels/block_pool.h"
#include "engine/contract/world/publication.h"

namespace sluice::comm {

/// A landing whose memory is a block of the parcels of its rank. After the version there is room for a checksum of each chunk,
/// which the ranks that have it in common tell each other. It keeps the block. Its bytes belong to who brings them, until that
/// has said so.
class BlockLanding final : public engine::Landing {
 public:
  /// `number`: how many the rank asked for before.
  BlockLanding(std::shared_ptr<Block> block, size_t bytes, int number, int sharers)
      : block_(std::move(block)), bytes_(bytes), number_(number), sharers_(sharers) {}

  /// Of a block for so many bytes, which come in so many chunks.
  static size_t block_bytes(size_t bytes, size_t chunks) { return begin_of_checksums(bytes) + chunks * sizeof(uint32_t); }

  std::span<std::byte> bytes() const override { return {block_->memory.data(), bytes_}; }
  int sharers() const override { return sharers_; }
  int number() const { return number_; }
  const std::shared_ptr<Block>& block() const { return block_; }

  /// Of chunks from this one on. Written by the rank that brings them, and read by the others when it has said so.
  void note(size_t chunk, const std::vector<uint32_t>& checksums) const {
    std::memcpy(place_of(chunk), checksums.data(), checksums.size() * sizeof(uint32_t));
  }
  std::vector<uint32_t> noted(size_t chunk, size_t count) const {
    std::vector<uint32_t> checksums(count);
    std::memcpy(checksums.data(), place_of(chunk), count * sizeof(uint32_t));
    return checksums;
  }

 private:
  static constexpr size_t kAligned = 64;  // a cache line

  static size_t begin_of_checksums(size_t bytes) { return (bytes + kAligned - 1) / kAligned * kAligned; }
  std::byte* place_of(size_t chunk) const {
    return block_->memory.data() + begin_of_checksums(bytes_) + chunk * sizeof(uint32_t);
  }

  const std::shared_ptr<Block> block_;
  const size_t bytes_;
  const int number_, sharers_;
};

}  // namespace sluice::comm
