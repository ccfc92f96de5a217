#include "models/kv_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"

namespace sluice::models {
namespace {

constexpr int64_t kSlabBytes = 4 << 20;  // large enough to be rare, small enough that a short run does not hold much

int64_t floats_of_a_head(const ModelConfig& config, int64_t block_size) { return 2 * block_size * config.head_dim; }

int64_t floats_of_a_block(const ModelConfig& config, int64_t block_size) {
  return config.layers * config.kv_heads * floats_of_a_head(config, block_size);
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, int64_t block_size, int64_t max_blocks)
    : block_size_(block_size),
      max_blocks_(max_blocks),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      head_floats_(floats_of_a_head(config, block_size)),
      block_floats_(floats_of_a_block(config, block_size)) {
  SLUICE_CHECK(block_size > 0 && block_size % 16 == 0, "the tokens of a KV block must be a multiple of 16");
  SLUICE_CHECK(max_blocks > 0 && max_blocks <= std::numeric_limits<int32_t>::max(), "the KV cache needs at least one block");
  while (bytes_per_block() << (slab_shift_ + 1) <= kSlabBytes) ++slab_shift_;
  slab_mask_ = (1 << slab_shift_) - 1;
}

void KvCache::reserve(std::vector<int32_t>& table, int64_t tokens) {
  const int64_t missing = blocks_for(tokens) - static_cast<int64_t>(table.size());
  if (missing <= 0) return;
  SLUICE_CHECK(blocks_in_use() + missing <= max_blocks_,
               "the KV cache of " + std::to_string(max_blocks_) + " blocks is exhausted: more was admitted than it holds");
  for (int64_t i = 0; i < missing; ++i) {
    if (free_.empty()) add_slab();
    table.push_back(free_.back());
    free_.pop_back();
  }
  peak_blocks_ = std::max(peak_blocks_, blocks_in_use());
}

void KvCache::release(std::vector<int32_t>& table) {
  free_.insert(free_.end(), table.rbegin(), table.rend());
  table.clear();
}

void KvCache::add_slab() {
  const int64_t count = std::min<int64_t>(int64_t{1} << slab_shift_, max_blocks_ - blocks_made_);
  at::Tensor storage = at::empty({count * block_floats_}, at::kFloat);
  float* data = storage.mutable_data_ptr<float>();
  slabs_.push_back({std::move(storage), data});
  for (int64_t i = count; i-- > 0;) free_.push_back(static_cast<int32_t>(blocks_made_ + i));
  blocks_made_ += count;
}

int64_t KvCache::bytes_held() const { return blocks_made_ * bytes_per_block(); }

int64_t KvCache::worst_bytes(const ModelConfig& config, int64_t tokens, int64_t sequences, int64_t block_size) {
  const int64_t filled = std::min(tokens, sequences);  // a sequence without tokens has no block
  const int64_t blocks = (tokens + filled * (block_size - 1)) / block_size;
  return blocks * floats_of_a_block(config, block_size) * static_cast<int64_t>(sizeof(float));
}

}  // namespace sluice::models
