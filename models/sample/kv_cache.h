#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/kernels/bfloat16.h"

namespace sluice::models {

/// What `tokens` tokens of one sequence take in a cache: keys and values of all layers.
int64_t kv_bytes(const ModelConfig& config, int64_t tokens, Precision precision = Precision::kFloat32);

/// Keys and values of the tokens that running samples have seen, in blocks of `block_size` tokens for all layers. Float32 or
/// bfloat16, on the CPU. A sequence of n tokens holds ceil(n / block_size) blocks, named by a table that its owner keeps; which
/// blocks are whose is BlockPool's to say. The memory is allocated once, by the constructor, and stays until the cache is
/// destroyed; it is not touched until a block is written.
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

  /// Copies all of block `from` to block `to`.
  void copy_block(int32_t from, int32_t to);

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
  int64_t key_dim() const { return key_dim_; }  // of a stored key: K in bfloat16, with a zero after an odd D
  Precision precision() const { return precision_; }

  int64_t bytes_per_block() const { return block_elements_ * bytes_of(precision_); }
  int64_t bytes_held() const { return blocks_ * bytes_per_block(); }  // whether in use or not

 private:
  Precision precision_;
  int64_t block_size_, blocks_, kv_heads_, head_dim_, key_dim_;
  int64_t head_elements_, block_elements_;  // of one head of one layer, of a whole block
  at::Tensor pool_;                         // [blocks, layers * kv_heads * block_size * (K + D)]
  void* data_;                              // of pool_
};

}  // namespace sluice::models
