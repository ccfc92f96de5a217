#include "models/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace sluice::models {
namespace {

ModelConfig config() {
  ModelConfig config;
  config.layers = 3;
  config.kv_heads = 2;
  config.head_dim = 8;
  return config;
}

TEST(KvCache, ASequenceHoldsTheBlocksThatItsTokensFill) {
  KvCache cache(config(), 16, 10);
  std::vector<int32_t> table;
  for (const auto& [tokens, blocks] :
       std::vector<std::pair<int64_t, size_t>>{{0, 0}, {1, 1}, {16, 1}, {17, 2}, {48, 3}, {5, 3}}) {
    cache.reserve(table, tokens);
    EXPECT_EQ(table.size(), blocks) << tokens;
  }
}

TEST(KvCache, BytesFollowTheBlocksInUseAndThePeakStays) {
  KvCache cache(config(), 16, 10);
  EXPECT_EQ(cache.bytes_per_block(), 3 * 2 * 2 * 16 * 8 * 4);  // layers, keys and values, kv heads, tokens, D, float32
  std::vector<int32_t> a, b;
  cache.reserve(a, 40);
  cache.reserve(b, 16);
  EXPECT_EQ(cache.bytes_in_use(), 4 * cache.bytes_per_block());
  cache.release(a);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(cache.bytes_in_use(), cache.bytes_per_block());
  cache.release(b);
  EXPECT_EQ(cache.bytes_in_use(), 0);
  EXPECT_EQ(cache.peak_bytes(), 4 * cache.bytes_per_block());
}

TEST(KvCache, BlocksOfDifferentSequencesAndHeadsDoNotOverlap) {
  KvCache cache(config(), 16, 300);  // more than one slab would hold if a slab held few
  std::vector<std::vector<int32_t>> tables(20);
  for (int64_t round = 1; round <= 5; ++round)
    for (auto& table : tables) cache.reserve(table, round * 48);
  std::set<float*> starts;
  for (const auto& table : tables)
    for (const int32_t block : table)
      for (int64_t layer = 0; layer < 3; ++layer)
        for (int64_t head = 0; head < 2; ++head) {
          float* start = cache.head_block(block, layer, head);
          std::fill(start, start + 2 * 16 * 8, 0.0f);  // the whole block is writable
          starts.insert(start);
        }
  EXPECT_EQ(starts.size(), 20u * 15 * 3 * 2);
  float* previous = nullptr;
  for (float* start : starts) {
    if (previous != nullptr) {
      EXPECT_GE(start - previous, 2 * 16 * 8);
    }
    previous = start;
  }
}

TEST(KvCache, MemoryGrowsWithUseAndNotBeyondTheLimit) {
  ModelConfig large = config();
  large.layers = 24;
  large.head_dim = 128;  // 786 kB a block: a slab holds 4
  KvCache cache(large, 16, 10);
  EXPECT_EQ(cache.bytes_held(), 0);
  std::vector<int32_t> table;
  cache.reserve(table, 16);
  EXPECT_LT(cache.bytes_held(), 10 * cache.bytes_per_block());
  cache.reserve(table, 160);
  EXPECT_EQ(cache.bytes_held(), 10 * cache.bytes_per_block());
}

TEST(KvCache, ReturnedBlocksAreUsedAgain) {
  KvCache cache(config(), 16, 4);
  std::vector<int32_t> table;
  for (int round = 0; round < 100; ++round) {
    cache.reserve(table, 64);
    cache.release(table);
  }
  EXPECT_EQ(cache.peak_bytes(), 4 * cache.bytes_per_block());
}

TEST(KvCache, AnExhaustedPoolIsABugAndLeavesTheTableAsItWas) {
  KvCache cache(config(), 16, 2);
  std::vector<int32_t> a, b;
  cache.reserve(a, 17);
  EXPECT_THROW(cache.reserve(b, 1), InternalError);
  EXPECT_TRUE(b.empty());
}

TEST(KvCache, WorstBytesCoverEveryWayToSpreadTheTokens) {
  // Seven tokens over three sequences with blocks of sixteen: one block each at worst. 33 over two: 1 + 32 gives 3, 16 + 17
  // gives 3.
  KvCache cache(config(), 16, 10);
  const auto blocks = [&](int64_t tokens, int64_t sequences) {
    return KvCache::worst_bytes(config(), tokens, sequences, 16) / cache.bytes_per_block();
  };
  EXPECT_EQ(blocks(7, 3), 3);
  EXPECT_EQ(blocks(33, 2), 3);
  EXPECT_EQ(blocks(34, 2), 4);  // 17 + 17
  EXPECT_EQ(blocks(2, 9), 2);
  EXPECT_EQ(blocks(0, 9), 0);
}

}  // namespace
}  // namespace sluice::models
