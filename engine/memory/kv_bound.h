#pragma once

#include <cstdint>

namespace sluice::engine {

/// What limits the samples of a rollout that hold KV blocks at a time.
struct KvDemand {
  int64_t tokens = 0;               // credit that all of them have at most
  int64_t least_sample_tokens = 1;  // credit of one sample: least <= credit <= worst
  int64_t worst_sample_tokens = 1;
  int64_t running_samples = 0;  // samples at most; 0: only their tokens limit them
  int64_t block_tokens = 1;     // a sample with credit of c tokens holds ceil(c / block_tokens) blocks
  int64_t samples_per_group = 1;
  int64_t shared_prompt_tokens = 0;  // the longest prompt, where a group stores its whole blocks once; 0: each has its own
};

/// The most blocks that samples within `demand` can hold together: a pool of so many never keeps a sample waiting that has its
/// tokens and its place. All numbers are positive, but running_samples and shared_prompt_tokens may be 0; 0 when the tokens are
/// fewer than one sample's.
///
/// Where prompts are not shared it is exact: one block less would keep some sample waiting. How samples are put into groups does
/// not matter then: when some samples of a group have ended early, what they keep may be as little as a prompt and one token, and
/// the credit that they gave back admits others. Shared prompts are an upper bound; they help where running_samples is the limit,
/// because prompts of one token leave nothing to share.
int64_t worst_kv_blocks(const KvDemand& demand);

}  // namespace sluice::engine
