#include "models/sample/kv_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"

namespace sluice::models::kv_cache_test {
namespace {

ModelConfig config() {
  ModelConfig config;
  config.layers = 3;
  config.kv_heads = 2;
  config.head_dim = 8;
  return config;
}

TEST(KvCache, ASequenceHoldsTheBlocksThatItsTokensFill) {
  const KvCache cache(config(), 16, 10);
  for (const auto& [tokens, blocks] : std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 1}, {16, 1}, {17, 2}, {48, 3}})
    EXPECT_EQ(cache.blocks_for(tokens), blocks) << tokens;
}

TEST(KvCache, ACopiedBlockHoldsTheSameKeysAndValuesAndLeavesTheOthersAlone) {
  KvCache cache(config(), 16, 3);
  float* data = cache.head_block(0, 0, 0);
  const int64_t floats = cache.bytes_per_block() / 4;
  for (int64_t i = 0; i < 3 * floats; ++i) data[i] = static_cast<float>(i);
  cache.copy_block(2, 0);
  for (int64_t i = 0; i < floats; ++i) EXPECT_EQ(data[i], static_cast<float>(2 * floats + i));
  for (int64_t i = floats; i < 3 * floats; ++i) EXPECT_EQ(data[i], static_cast<float>(i));
}

TEST(KvCache, DifferentBlocksAndHeadsDoNotOverlap) {
  KvCache cache(config(), 16, 300);
  std::set<float*> starts;
  for (int32_t block = 0; block < 300; ++block)
    for (int64_t layer = 0; layer < 3; ++layer)
      for (int64_t head = 0; head < 2; ++head) {
        float* start = cache.head_block(block, layer, head);
        std::fill(start, start + 2 * 16 * 8, 0.0f);  // the whole block is writable
        starts.insert(start);
      }
  EXPECT_EQ(starts.size(), 300u * 3 * 2);
  float* previous = nullptr;
  for (float* start : starts) {
    if (previous != nullptr) {
      EXPECT_GE(start - previous, 2 * 16 * 8);
    }
    previous = start;
  }
}

TEST(KvCache, ThePoolIsHeldAsAWholeFromTheBeginning) {
  const KvCache cache(config(), 16, 10);
  EXPECT_EQ(cache.bytes_per_block(), 3 * 2 * 2 * 16 * 8 * 4);  // layers, keys and values, kv heads, tokens, D, float32
  EXPECT_EQ(cache.bytes_held(), 10 * cache.bytes_per_block());
}

TEST(KvCache, APoolThatNoMemoryHoldsIsTheUsersError) {
  ModelConfig large = config();
  large.layers = 80;
  large.head_dim = 1024;
  EXPECT_THAT([&] { KvCache(large, 16, 1 << 30); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("no memory for a KV cache")));
}

}  // namespace
}  // namespace sluice::models::kv_cache_test
