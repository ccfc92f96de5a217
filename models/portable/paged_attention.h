#pragma once

#include <ATen/core/Tensor.h>

#include "models/portable/attention.h"

namespace sluice::models::portable {

/// Attention of n new tokens in each of S sequences over keys and values that lie in blocks, those of the new tokens among them.
/// Gathers the blocks of each sequence, so it takes memory for a copy of what is read.
///
/// query        [S,n,Nq,D]
/// keys, values [blocks,block_size,Nk,D]
/// table        [S,W] int64: the blocks of each sequence; behind its last any
/// positions    [S,n] int64 of the new tokens: a token sees itself and what is before it
/// returns      [S,n,Nq,D]
at::Tensor paged_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, const at::Tensor& table,
                           const at::Tensor& positions, const AttentionScores& scores);

}  // namespace sluice::models::portable
