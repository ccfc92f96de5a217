#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/attention_scores.h"

namespace sluice::models {

/// portable::paged_attention() of one new token a sequence by a kernel that reads the blocks where they lie: LibTorch's operator
/// kPagedDecodeAttention, of which a device has a kernel or not (portable/abilities.h). GPUs have ours, paged_decode_attention.cu,
/// which uses the default stream. No gradient. The plain reference is portable::paged_attention().
///
/// query        [S,Nq,D] float32 or bfloat16, as keys and values
/// keys, values [blocks,block_size,Nk,D]
/// table        [S,W] int64
/// positions    [S] int64 of the new tokens
/// returns      [S,Nq,D]
at::Tensor paged_decode_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  const at::Tensor& table, const at::Tensor& positions, const AttentionScores& scores);

inline constexpr const char* kPagedDecodeAttention = "sluice::paged_decode_attention";

/// From here on GPUs have a kernel for it: ours, which are loaded. Once a process, or again; from one thread.
void offer_paged_decode_attention();

}  // namespace sluice::models
