#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/kernels/bfloat16.h"
#include "models/precision.h"

namespace sluice::models {

/// What `tokens` tokens of one sequence take in a cache: keys and values of all layers.
int64_t kv_bytes(const ModelConfig& config, int64_t tokens, Precision precision = Precision::kFloat32);

/// Keys and values of the tokens that running samples have seen, in a pool of blocks of `block_size` tokens for all layers.
/// On the CPU, float32 or bfloat16. A sequence of n tokens holds ceil(n / block_size) blocks, named by a table that its owner keeps.
/// The pool is allocated once, by the constructor, and stays until the cache is destroyed; blocks that were never used are not
/// touched, and those used last are used again first.
///
/// One block of one layer and one key/value head is stored for the attention kernel:
///   keys   [D, block_size]          transposed, so that the tokens of a block lie in vector lanes
///          [K/2, block_size, 2]     in bfloat16, K = D rounded up to an even number: pairs, as products of pairs read them
///   values [block_size, D]
///
/// Not thread-safe, except that different blocks may be read and written by different threads.
class KvCache {
 public:
  /// A pool of `blocks` blocks; `block_size` is a positive multiple of 16. Throws UserError when there is no memory for it.
  KvCache(const ModelConfig& config, int64_t block_size, int64_t blocks, Precision precision = Precision::kFloat32);

  /// Extends `table` until it has room for `tokens` tokens. Throws InternalError when the pool is exhausted: who admits samples
  /// must have counted blocks_for() their worst case.
  void reserve(std::vector<int32_t>& table, int64_t tokens);

  /// Gives the blocks of `table` back and empties it.
  void release(std::vector<int32_t>& table);

  /// Keys of (block, layer, kv_head); the values follow at + block_size * key_dim(). `Element` is float or Bfloat16, as the
  /// precision says.
  template <class Element = float>
  Element* head_block(int32_t block, int64_t layer, int64_t kv_head) const {
    return static_cast<Element*>(data_) + block * block_elements_ + (layer * kv_heads_ + kv_head) * head_elements_;
  }

  int64_t blocks_for(int64_t tokens) const { return (tokens + block_size_ - 1) / block_size_; }
  int64_t block_size() const { return block_size_; }
  int64_t blocks() const { return blocks_; }
  int64_t kv_heads() const { return kv_heads_; }
  int64_t head_dim() const { return head_dim_; }
  int64_t key_dim() const { return key_dim_; }  // of a stored key: K in bfloat16, with a zero behind an odd D
  Precision precision() const { return precision_; }

  int64_t blocks_in_use() const { return blocks_ - static_cast<int64_t>(free_.size()); }
  int64_t bytes_per_block() const { return block_elements_ * bytes_of(precision_); }
  int64_t bytes_in_use() const { return blocks_in_use() * bytes_per_block(); }
  int64_t bytes_held() const { return blocks_ * bytes_per_block(); }  // of the pool, whether in use or not

  /// The most bytes that were in use at a time since the last call.
  int64_t take_peak_bytes();

 private:
  Precision precision_;
  int64_t block_size_, blocks_, kv_heads_, head_dim_, key_dim_;
  int64_t head_elements_, block_elements_;  // of one head of one layer, of a whole block
  at::Tensor pool_;                         // [blocks, layers * kv_heads * block_size * (K + D)]
  void* data_;                              // of pool_
  std::vector<int32_t> free_;           // used from the back
  int64_t peak_blocks_ = 0;
};

}  // namespace sluice::models
