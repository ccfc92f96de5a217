#include "models/generation/kv_cache.h"

#include <gmock/gmock.h>
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

TEST(KvCache, BytesFollowTheBlocksInUseAndThePeakStaysUntilItIsTaken) {
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
  EXPECT_EQ(cache.take_peak_bytes(), 4 * cache.bytes_per_block());
}

TEST(KvCache, BlocksOfDifferentSequencesAndHeadsDoNotOverlap) {
  KvCache cache(config(), 16, 300);
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

TEST(KvCache, ThePoolIsHeldAsAWholeFromTheBeginning) {
  const KvCache cache(config(), 16, 10);
  EXPECT_EQ(cache.bytes_held(), 10 * cache.bytes_per_block());
  EXPECT_EQ(cache.bytes_in_use(), 0);
}

TEST(KvCache, APoolThatNoMemoryHoldsIsTheUsersError) {
  ModelConfig large = config();
  large.layers = 80;
  large.head_dim = 1024;
  EXPECT_THAT([&] { KvCache(large, 16, 1 << 30); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("no memory for a KV cache")));
}

TEST(KvCache, ReturnedBlocksAreUsedAgain) {
  KvCache cache(config(), 16, 4);
  std::vector<int32_t> table;
  for (int round = 0; round < 100; ++round) {
    cache.reserve(table, 64);
    cache.release(table);
  }
  EXPECT_EQ(cache.take_peak_bytes(), 4 * cache.bytes_per_block());
}

TEST(KvCache, APeakBeginsWithWhatIsInUseWhenTheLastOneWasTaken) {
  KvCache cache(config(), 16, 10);
  std::vector<int32_t> a, b;
  cache.reserve(a, 48);
  cache.reserve(b, 16);
  cache.release(a);
  EXPECT_EQ(cache.take_peak_bytes(), 4 * cache.bytes_per_block());
  EXPECT_EQ(cache.take_peak_bytes(), 1 * cache.bytes_per_block());
  cache.reserve(b, 32);
  EXPECT_EQ(cache.take_peak_bytes(), 2 * cache.bytes_per_block());
}

TEST(KvCache, AnExhaustedPoolIsABugAndLeavesTheTableAsItWas) {
  KvCache cache(config(), 16, 2);
  std::vector<int32_t> a, b;
  cache.reserve(a, 17);
  EXPECT_THROW(cache.reserve(b, 1), InternalError);
  EXPECT_TRUE(b.empty());
}

}  // namespace
}  // namespace sluice::models
