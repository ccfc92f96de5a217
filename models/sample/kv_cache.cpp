#include "models/sample/kv_cache.h"

#include <ATen/ops/empty.h>

#include <cstring>
#include <exception>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

at::Tensor allocate(int64_t blocks, int64_t block_elements, Precision precision) {
  try {
    return at::empty({blocks, block_elements}, precision == Precision::kFloat32 ? at::kFloat : at::kBFloat16);
  } catch (const std::exception&) {  // std::bad_alloc, or what LibTorch makes of it or of a size that no integer holds
    const double bytes = static_cast<double>(blocks) * static_cast<double>(block_elements) * bytes_of(precision);
    throw UserError("there is no memory for a KV cache of " + human_bytes(bytes),
                    "fewer tokens_in_flight, or a smaller max_new_tokens");
  }
}

// Of keys: pairs in bfloat16.
int64_t key_dim_of(const ModelConfig& config, Precision precision) {
  return precision == Precision::kBfloat16 ? config.head_dim + config.head_dim % 2 : config.head_dim;
}

}  // namespace

int64_t kv_bytes(const ModelConfig& config, int64_t tokens, Precision precision) {
  return tokens * config.layers * config.kv_heads * (key_dim_of(config, precision) + config.head_dim) * bytes_of(precision);
}

KvCache::KvCache(const ModelConfig& config, int64_t block_size, int64_t blocks, Precision precision)
    : precision_(precision),
      block_size_(block_size),
      blocks_(blocks),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      key_dim_(key_dim_of(config, precision)),
      head_elements_(block_size * (key_dim_ + head_dim_)),
      block_elements_(config.layers * config.kv_heads * head_elements_) {
  SLUICE_CHECK(block_size > 0 && block_size % 16 == 0, "the tokens of a KV block must be a multiple of 16");
  SLUICE_CHECK(blocks > 0 && blocks <= std::numeric_limits<int32_t>::max(), "the KV cache needs at least one block");
  pool_ = allocate(blocks, block_elements_, precision);
  data_ = pool_.mutable_data_ptr();
}

void KvCache::copy_block(int32_t from, int32_t to) {
  char* const blocks = static_cast<char*>(data_);
  std::memcpy(blocks + to * bytes_per_block(), blocks + from * bytes_per_block(), static_cast<size_t>(bytes_per_block()));
}

}  // namespace sluice::models
