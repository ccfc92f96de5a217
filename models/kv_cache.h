#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/config.h"

namespace sluice::models {

/// Keys and values of the tokens that running samples have seen, in a pool of blocks of `block_size` tokens for all layers.
/// Float32, on the CPU. A sequence of n tokens holds ceil(n / block_size) blocks, named by a table that its owner keeps.
///
/// One block of one layer and one key/value head is stored for the attention kernel:
///   keys   [D, block_size]   transposed, so that the tokens of a block lie in vector lanes
///   values [block_size, D]
///
/// Memory grows in slabs when blocks are needed and stays until the cache is destroyed. Not thread-safe, except that different
/// blocks may be read and written by different threads.
class KvCache {
 public:
  /// `block_size` is a positive multiple of 16; at most `max_blocks` blocks are ever in use.
  KvCache(const ModelConfig& config, int64_t block_size, int64_t max_blocks);

  /// Extends `table` until it has room for `tokens` tokens. Throws InternalError when the pool is exhausted: who admits samples
  /// must have counted blocks_for() their worst case.
  void reserve(std::vector<int32_t>& table, int64_t tokens);

  /// Gives the blocks of `table` back and empties it.
  void release(std::vector<int32_t>& table);

  /// Keys of (block, layer, kv_head); the values follow at + block_size * D.
  float* head_block(int32_t block, int64_t layer, int64_t kv_head) const {
    return slabs_[block >> slab_shift_].data + (block & slab_mask_) * block_floats_ +
           (layer * kv_heads_ + kv_head) * head_floats_;
  }

  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  int64_t block_size() const { return block_size_; }
  int64_t max_blocks() const { return max_blocks_; }
  int64_t kv_heads() const { return kv_heads_; }
  int64_t head_dim() const { return head_dim_; }

  int64_t blocks_in_use() const { return blocks_made_ - static_cast<int64_t>(free_.size()); }
  int64_t bytes_per_block() const { return block_floats_ * static_cast<int64_t>(sizeof(float)); }
  int64_t bytes_in_use() const { return blocks_in_use() * bytes_per_block(); }
  int64_t peak_bytes() const { return peak_blocks_ * bytes_per_block(); }  // the most that was ever in use
  int64_t bytes_held() const;                                              // slabs, whether in use or not

  /// The most that `tokens` tokens can take when they are spread over `sequences` sequences: each wastes at most one token less
  /// than a block.
  static int64_t worst_bytes(const ModelConfig& config, int64_t tokens, int64_t sequences, int64_t block_size = 16);

 private:
  struct Slab {
    at::Tensor storage;
    float* data;
  };

  void add_slab();

  int64_t block_size_, max_blocks_, kv_heads_, head_dim_;
  int64_t head_floats_, block_floats_;  // of one head of one layer, of a whole block
  int slab_shift_ = 0;                  // a slab has 2^slab_shift_ blocks
  int32_t slab_mask_ = 0;
  std::vector<Slab> slabs_;
  std::vector<int32_t> free_;  // used from the back
  int64_t blocks_made_ = 0;
  int64_t peak_blocks_ = 0;
};

}  // namespace sluice::models
