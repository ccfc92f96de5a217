#pragma once

#include <cstdint>
#include <vector>

#include "models/sample/block_pool.h"
#include "models/sample/kv_cache.h"

namespace sluice::models {

/// A cache whose blocks are handed out as sequences grow, for tests of what reads and writes it.
struct CacheWithPool : KvCache {
  CacheWithPool(const ModelConfig& config, int64_t block_size, int64_t blocks, Precision precision = Precision::kFloat32)
      : KvCache(config, block_size, blocks, precision), pool(blocks) {}

  void reserve(std::vector<int32_t>& table, int64_t tokens) { pool.extend(table, blocks_for(tokens)); }

  BlockPool pool;
};

}  // namespace sluice::models
