#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"

namespace sluice::models {

/// What `tokens` tokens of one sequence take in a cache: keys and values of all layers, float32.
int64_t kv_bytes(const ModelConfig& config, int64_t tokens);

/// Keys and values of the tokens that running samples have seen, in a pool of blocks of `block_size` tokens for all layers.
/// Float32, on the CPU. A sequence of n tokens holds ceil(n / block_size) blocks, named by a table that its owner keeps.
/// The pool is allocated once, by the constructor, and stays until the cache is destroyed; blocks that were never used are not
/// touched, and those used last are used again first.
///
/// One block of one layer and one key/value head is stored for the attention kernel:
///   keys   [D, block_size]   transposed, so that the tokens of a block lie in vector lanes
///   values [block_size, D]
///
/// Not thread-safe, except that different blocks may be read and written by different threads.
class KvCache {
 public:
  /// A pool of `blocks` blocks; `block_size` is a positive multiple of 16. Throws UserError when there is no memory for it.
  KvCache(const ModelConfig& config, int64_t block_size, int64_t blocks);

  /// Extends `table` until it has room for `tokens` tokens. Throws InternalError when the pool is exhausted: who admits samples
  /// must have counted blocks_for() their worst case.
  void reserve(std::vector<int32_t>& table, int64_t tokens);

  /// Gives the blocks of `table` back and empties it.
  void release(std::vector<int32_t>& table);

  /// Keys of (block, layer, kv_head); the values follow at + block_size * D.
  float* head_block(int32_t block, int64_t layer, int64_t kv_head) const {
    return data_ + block * block_floats_ + (layer * kv_heads_ + kv_head) * head_floats_;
  }

  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  int64_t block_size() const { return block_size_; }
  int64_t blocks() const { return blocks_; }
  int64_t kv_heads() const { return kv_heads_; }
  int64_t head_dim() const { return head_dim_; }

  int64_t blocks_in_use() const { return blocks_ - static_cast<int64_t>(free_.size()); }
  int64_t bytes_per_block() const { return block_floats_ * static_cast<int64_t>(sizeof(float)); }
  int64_t bytes_in_use() const { return blocks_in_use() * bytes_per_block(); }
  int64_t bytes_held() const { return blocks_ * bytes_per_block(); }  // of the pool, whether in use or not

  /// The most bytes that were in use at a time since the last call.
  int64_t take_peak_bytes();

 private:
  int64_t block_size_, blocks_, kv_heads_, head_dim_;
  int64_t head_floats_, block_floats_;  // of one head of one layer, of a whole block
  at::Tensor pool_;                     // [blocks, layers * kv_heads * 2 * block_size * D]
  float* data_;                         // of pool_
  std::vector<int32_t> free_;           // used from the back
  int64_t peak_blocks_ = 0;
};

}  // namespace sluice::models
