#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "models/layers/feed_forward/routes.h"

namespace sluice::models {

/// The routes (routes.h) of the tokens whose keys and values are in a KV cache, by its blocks: so they are shared, copied and
/// forgotten with these. On the host, wherever the cache is. Allocates in its constructor alone. Not thread-safe.
class RouteBlocks {
 public:
  RouteBlocks(const RouteForm& form, int64_t block_size, int64_t blocks);

  const RouteForm& form() const { return form_; }

  /// The route of the token at a position of a sequence whose block there is `block`.
  uint8_t* at(int32_t block, int64_t position) {
    return bytes_.get() + (block * block_size_ + position % block_size_) * form_.token_bytes();
  }

  void copy_block(int32_t from, int32_t to);

  /// Those of the tokens [begin, end) of a sequence, after what is in `to`.
  void append(std::span<const int32_t> blocks, int64_t begin, int64_t end, std::string& to) const;

 private:
  const RouteForm form_;
  const int64_t block_size_;
  std::unique_ptr<uint8_t[]> bytes_;  // [blocks, block_size, token_bytes], not touched until it is written
};

}  // namespace sluice::models
