#pragma once

#include <ATen/core/Tensor.h>

#include "models/portable/attention.h"

namespace sluice::models::portable {

/// Attention of n new tokens in each of S sequences over keys and values that lie in blocks, those of the new tokens among them.
/// Gathers the blocks of each sequence, so it takes memory for a copy of what is read.
///
/// query        [S,n,Nq,D]
/// keys, values [blocks,block_size,Nk,D]
/// table        [S,W] int64: the blocks of each sequence; after its last any
/// positions    [S,n] int64 of the new tokens: a token sees itself and what is before it
/// returns      [S,n,Nq,D]
at::Tensor paged_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, const at::Tensor& table,
                           const at::Tensor& positions, const AttentionScores& scores);

/// Some sequences of a step with several new tokens each, packed, as flash attention takes them. A handle; tensors are on the
/// device.
struct PackedSequences {
  at::Tensor rows;    // [n] int64: their new tokens among those of the step
  at::Tensor slots;   // [L] int64: places in the cache of all their tokens, those before included
  Begins new_tokens;  // into rows
  Begins tokens;      // into slots
};

/// Their attention, by one call of flash attention, which must take them. Copies the keys and values that are read.
///
/// query        [n,Nq,D]
/// keys, values [blocks,block_size,Nk,D]
/// returns      [n,Nq,D]
at::Tensor ragged_paged_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  const PackedSequences& rows, const AttentionScores& scores);

}  // namespace sluice::models::portable
