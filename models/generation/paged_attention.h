#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/generation/kv_cache.h"
#include "models/kernels/machine.h"

namespace sluice::models {

/// What one sequence brings to a step: `new_tokens` >= 1 tokens at the positions [cached, cached + new_tokens). A prompt (or a
/// chunk of one) and a decoded token differ only in the count.
struct PagedSequence {
  int64_t cached = 0;  // tokens whose keys and values are in the blocks before the step
  int64_t new_tokens = 0;
  std::span<const int32_t> blocks;  // room for cached + new_tokens tokens
};

/// How queries and keys become weights.
struct PagedScores {
  float scale = 1;     // of a query times a key; above 0
  float softcap = 0;   // c: a scaled score s becomes c tanh(s / c); 0: it does not
  int64_t window = 0;  // the last tokens that a token sees, itself included; 0: all
};

/// Causal grouped-query attention of the new tokens of each sequence over what that sequence has in its blocks, the new tokens'
/// own keys and values included (they must have been written). Blocks that lie wholly before a token's window are not read.
///
/// queries [T, heads*D]  T: all new tokens, in the order of the sequences; rotated; row stride query_stride
/// out     [T, heads*D]  contiguous
///
/// Parallel over (sequence, kv head). The result of a token depends on nothing but its query and its sequence's keys and values:
/// it is bit-identical whatever else is in the step and however its prompt was cut into chunks.
void paged_attention(const KvCache& cache, int64_t layer, int64_t heads, const PagedScores& scores,
                     std::span<const PagedSequence> sequences, const float* queries, int64_t query_stride, float* out,
                     Machine machine = this_machine());

}  // namespace sluice::models
