#include "models/generation/kv_cache.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <exception>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::models {
namespace {

at::Tensor allocate(int64_t blocks, int64_t block_floats) {
  try {
    return at::empty({blocks, block_floats}, at::kFloat);
  } catch (const std::exception&) {  // std::bad_alloc, or what LibTorch makes of it or of a size that no integer holds
    const double bytes = static_cast<double>(blocks) * static_cast<double>(block_floats) * sizeof(float);
    throw UserError("there is no memory for a KV cache of " + human_bytes(bytes),
                    "fewer tokens_in_flight, or a smaller max_new_tokens");
  }
}

}  // namespace

int64_t kv_bytes(const ModelConfig& config, int64_t tokens) {
  return tokens * config.layers * config.kv_heads * 2 * config.head_dim * static_cast<int64_t>(sizeof(float));
}

KvCache::KvCache(const ModelConfig& config, int64_t block_size, int64_t blocks)
    : block_size_(block_size),
      blocks_(blocks),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      head_floats_(2 * block_size * config.head_dim),
      block_floats_(config.layers * config.kv_heads * head_floats_) {
  SLUICE_CHECK(block_size > 0 && block_size % 16 == 0, "the tokens of a KV block must be a multiple of 16");
  SLUICE_CHECK(blocks > 0 && blocks <= std::numeric_limits<int32_t>::max(), "the KV cache needs at least one block");
  pool_ = allocate(blocks, block_floats_);
  data_ = pool_.mutable_data_ptr<float>();
}

void KvCache::copy_block(int32_t from, int32_t to) {
  std::memcpy(data_ + to * block_floats_, data_ + from * block_floats_, static_cast<size_t>(bytes_per_block()));
}

}  // namespace sluice::models
