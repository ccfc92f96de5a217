#include "engine/kv_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::engine {
namespace {

// Every set of samples, one sample after the other: most[t] is the most blocks within t tokens.
int64_t by_enumeration(const KvDemand& demand) {
  std::vector<int64_t> most(static_cast<size_t>(demand.tokens) + 1, 0);
  const int64_t samples = demand.running_samples > 0 ? demand.running_samples : demand.tokens;
  for (int64_t sample = 0; sample < samples; ++sample) {
    std::vector<int64_t> next = most;
    for (int64_t tokens = 0; tokens <= demand.tokens; ++tokens) {
      for (int64_t credit = demand.least_sample_tokens; credit <= std::min(tokens, demand.worst_sample_tokens); ++credit) {
        const int64_t blocks = (credit + demand.block_tokens - 1) / demand.block_tokens;
        next[tokens] = std::max(next[tokens], most[tokens - credit] + blocks);
      }
    }
    if (next == most) break;
    most = std::move(next);
  }
  return most.back();
}

TEST(WorstKvBlocks, IsTheLargestNumberThatAnySetOfSamplesHolds) {
  for (int64_t block : {1, 2, 3, 4, 7}) {
    for (int64_t least = 1; least <= 12; ++least) {
      for (int64_t worst : {least, least + 1, least + 2, least + 5, least + 11, least + 60}) {
        for (int64_t running : {0, 1, 2, 3, 5, 8}) {
          for (int64_t tokens : {1, 5, 11, 12, 13, 24, 29, 40}) {
            const KvDemand demand{tokens, least, worst, running, block};
            ASSERT_EQ(worst_kv_blocks(demand), by_enumeration(demand)) << "tokens " << tokens << ", a sample " << least << " to "
                                                                       << worst << ", running " << running << ", block " << block;
          }
        }
      }
    }
  }
}

TEST(WorstKvBlocks, ShortSamplesHoldOneBlockEachWhateverTheyFillOfIt) {
  EXPECT_EQ(worst_kv_blocks({.tokens = 4096, .least_sample_tokens = 7, .worst_sample_tokens = 14, .block_tokens = 16}), 4096 / 7);
  EXPECT_EQ(
      worst_kv_blocks(
          {.tokens = 4096, .least_sample_tokens = 7, .worst_sample_tokens = 14, .running_samples = 512, .block_tokens = 16}),
      512);
}

TEST(WorstKvBlocks, TokensThatAreFewerThanASampleNeedNoBlock) {
  EXPECT_EQ(worst_kv_blocks({.tokens = 6, .least_sample_tokens = 7, .worst_sample_tokens = 14, .block_tokens = 16}), 0);
}

TEST(WorstKvBlocks, LargeFiguresDoNotOverflow) {
  const KvDemand demand{
      .tokens = int64_t{1} << 62, .least_sample_tokens = 1, .worst_sample_tokens = int64_t{1} << 62, .block_tokens = 16};
  EXPECT_EQ(worst_kv_blocks(demand), int64_t{1} << 62);
}

}  // namespace
}  // namespace sluice::engine
