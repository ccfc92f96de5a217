#include "engine/memory/kv_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::engine::kv_bound_test {
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

// Every set of groups of `running` running samples and others that have ended after one token: most[t][r] is the most blocks
// within t tokens and r places. A prompt's whole blocks count once.
int64_t of_groups(const KvDemand& demand, int64_t new_tokens) {
  const int64_t n = demand.samples_per_group, block = demand.block_tokens, places = demand.running_samples;
  std::vector<std::vector<int64_t>> most(static_cast<size_t>(demand.tokens) + 1, std::vector<int64_t>(places + 1));
  for (int64_t tokens = 0; tokens <= demand.tokens; ++tokens) {
    for (int64_t place = 1; place <= places; ++place) {
      int64_t& best = most[tokens][place];
      for (int64_t prompt = 1; prompt <= demand.shared_prompt_tokens; ++prompt) {
        for (int64_t running = 1; running <= std::min(n, place); ++running) {
          const int64_t credit = running * (prompt + new_tokens) + (n - running) * (prompt + 1);
          if (credit > tokens) break;
          const int64_t shared = prompt / block, own = (prompt + new_tokens + block - 1) / block - shared;
          best = std::max(best, shared + running * own + most[tokens - credit][place - running]);
        }
      }
    }
  }
  return most.back().back();
}

TEST(WorstKvBlocks, CountAPromptThatIsSharedOnce) {
  for (int64_t block : {2, 4}) {
    for (int64_t samples : {1, 2, 4}) {
      for (int64_t prompt : {1, 5, 9}) {
        for (int64_t new_tokens : {1, 3, 6}) {
          for (int64_t running : {1, 3, 8}) {
            for (int64_t tokens : {40, 90}) {
              KvDemand demand{tokens, 1 + new_tokens, prompt + new_tokens, running, block};
              const int64_t apart = worst_kv_blocks(demand);
              demand.samples_per_group = samples, demand.shared_prompt_tokens = prompt;
              const int64_t shared = worst_kv_blocks(demand);
              ASSERT_GE(shared, of_groups(demand, new_tokens)) << prompt << " + " << new_tokens << " x " << samples;
              ASSERT_LE(shared, apart);
            }
          }
        }
      }
    }
  }
}

TEST(WorstKvBlocks, OfLongSharedPromptsAreFewWherePlacesAreTheLimit) {
  KvDemand demand{
      .tokens = 1 << 20, .least_sample_tokens = 65, .worst_sample_tokens = 576, .running_samples = 64, .block_tokens = 16};
  EXPECT_EQ(worst_kv_blocks(demand), 64 * 36);
  demand.samples_per_group = 64, demand.shared_prompt_tokens = 512;
  EXPECT_EQ(worst_kv_blocks(demand), (1 << 20) / 64 / 16 + 64 * 5);
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
}  // namespace sluice::engine::kv_bound_test
