#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "comm/parcels/block_pool.h"
#include "engine/contract/publication.h"

namespace sluice::comm {

/// A landing whose memory is a block of the parcels of its rank.
class BlockLanding final : public engine::Landing {
 public:
  BlockLanding(std::shared_ptr<Block> block, size_t bytes) : block_(std::move(block)), bytes_(bytes) {}

  std::span<std::byte> bytes() const override { return {block_->memory.data(), bytes_}; }
  const std::shared_ptr<Block>& block() const { return block_; }

 private:
  const std::shared_ptr<Block> block_;
  const size_t bytes_;
};

}  // namespace sluice::comm
