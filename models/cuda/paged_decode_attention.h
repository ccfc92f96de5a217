#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/attention_scores.h"

namespace c10 {
class OperatorHandle;
}

namespace sluice::models {

/// portable::paged_attention() of one new token a sequence by a kernel that reads the blocks where they lie: an operator of
/// LibTorch's, of which a device has a kernel or not (portable/abilities.h). GPUs have ours, paged_decode_attention.cu.
/// No gradient. The plain reference is portable::paged_attention().
///
/// query        [S,Nq,D] float32 or bfloat16, as keys and values
/// keys, values [blocks,block_size,Nk,D]
/// table        [S,W] int64
/// positions    [S] int64 of the new tokens
/// returns      [S,Nq,D]
at::Tensor paged_decode_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  const at::Tensor& table, const at::Tensor& positions, const AttentionScores& scores);

/// The operator, which LibTorch knows from the first call on. From any thread.
const c10::OperatorHandle& paged_decode_attention_operator();

/// From here on GPUs have a kernel for it: ours, which are loaded. Once a process, or again; from any thread.
void offer_paged_decode_attention();

}  // namespace sluice::models
