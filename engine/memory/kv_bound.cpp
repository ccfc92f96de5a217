#include "engine/memory/kv_bound.h"

#include <algorithm>

#include "base/error.h"
#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

int64_t blocks_of(int64_t tokens, int64_t block) { return (tokens - 1) / block + 1; }

// The most blocks of exactly `samples` samples. Each has its least credit; what is left buys more blocks. A sample's first
// further block costs what its last block lacks plus one token, at most as much as each of its other ones, `block` tokens: so
// first blocks first.
int64_t blocks_of_samples(const KvDemand& demand, int64_t samples) {
  const int64_t block = demand.block_tokens;
  const int64_t least = blocks_of(demand.least_sample_tokens, block), most = blocks_of(demand.worst_sample_tokens, block);
  const int64_t blocks = samples * least;
  if (least == most) return blocks;
  const int64_t first_cost = least * block + 1 - demand.least_sample_tokens;
  const int64_t left = demand.tokens - samples * demand.least_sample_tokens;
  const int64_t first = std::min(samples, left / first_cost);
  if (first < samples) return blocks + first;
  return blocks + first + std::min(saturating_product(samples, most - least - 1), (left - first * first_cost) / block);
}

// The same where the whole blocks of a prompt are stored once. A group with a prompt of p tokens has at least p tokens of credit
// for each of its samples, ended ones too, so all prompts together have at most tokens / samples_per_group. A sample's own blocks
// are those of its new tokens and of what the last block of the prompt holds.
int64_t blocks_with_shared_prompts(const KvDemand& demand, int64_t samples) {
  const int64_t block = demand.block_tokens, prompt = demand.shared_prompt_tokens;
  const int64_t new_tokens = std::max<int64_t>(1, demand.worst_sample_tokens - prompt);
  const int64_t of_prompts =
      std::min(demand.tokens / demand.samples_per_group / block, saturating_product(samples, prompt / block));
  return saturating_sum(of_prompts, saturating_product(samples, blocks_of(std::min(prompt, block - 1) + new_tokens, block)));
}

}  // namespace

// The best number of samples m. With least = k blocks at a cost of c tokens and first_cost = f, c + f = k B + 1:
//   all samples can buy a first further block, m (c + f) <= tokens:
//     m (k + 1) + min(m (most - k - 1), (tokens - m (k B + 1)) / B), both terms with m (k + 1) do not decrease with m;
//   not all can:  m k + (tokens - m c) / f = (tokens + m (k f - c)) / f, monotonous in m.
// Rounding down keeps that, so the best m is at an end of one of the two ranges.
int64_t worst_kv_blocks(const KvDemand& demand) {
  SLUICE_CHECK(
      demand.block_tokens > 0 && demand.least_sample_tokens > 0 && demand.least_sample_tokens <= demand.worst_sample_tokens,
      "a sample's tokens and a block's are positive");
  int64_t most_samples = demand.tokens / demand.least_sample_tokens;
  if (demand.running_samples > 0) most_samples = std::min(most_samples, demand.running_samples);
  if (most_samples < 1) return 0;
  const int64_t with_further_block = blocks_of(demand.least_sample_tokens, demand.block_tokens) * demand.block_tokens + 1;
  const int64_t all_buy = std::clamp<int64_t>(demand.tokens / with_further_block, 1, most_samples);
  const int64_t apart = std::max({blocks_of_samples(demand, most_samples), blocks_of_samples(demand, all_buy),
                                  blocks_of_samples(demand, std::min(all_buy + 1, most_samples))});
  return demand.shared_prompt_tokens > 0 ? std::min(apart, blocks_with_shared_prompts(demand, most_samples)) : apart;
}

}  // namespace sluice::engine
