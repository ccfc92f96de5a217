#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/layers/attention_scores.h"

namespace sluice::models::portable {

/// Attention of n queries over L keys in each of B sequences; `seen` says which, whatever scores.window is.
///
/// query       [B,Nq,n,D]
/// key, value  [B,Nk,L,D]
/// seen        [B or 1,1,n,L] bool; a query sees one key at least
/// returns     [B,Nq,n,D]
at::Tensor masked_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& seen,
                            const AttentionScores& scores);

/// Causal attention inside each sample of a ragged batch. In bfloat16 or float16 one call of the library's flash attention over
/// all samples (Dao 2023, "FlashAttention-2"), if it has that for the device and the head size and there is no soft cap; elsewhere sample
/// by sample.
///
/// query       [T,Nq,D]
/// key, value  [T,Nk,D]
/// offsets     [S+1] into T
/// returns     [T,Nq,D]
at::Tensor ragged_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            std::span<const int64_t> offsets, const AttentionScores& scores);

}  // namespace sluice::models::portable
