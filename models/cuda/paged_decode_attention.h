#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/attention_scores.h"

namespace sluice::models {

/// portable::paged_attention() of one new token a sequence by our own kernel (paged_decode_attention.cu), which reads the blocks
/// where they lie. On a GPU, whose default stream it uses. The plain reference is portable::paged_attention().
///
/// query        [S,Nq,D] float32 or bfloat16, as keys and values
/// keys, values [blocks,block_size,Nk,D]
/// table        [S,W] int64
/// positions    [S] int64 of the new tokens
/// returns      [S,Nq,D]
at::Tensor paged_decode_attention(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                                  const at::Tensor& table, const at::Tensor& positions, const AttentionScores& scores);

/// Throws UserError where that cannot be had: our kernels are not loaded, the device is no GPU, a head is larger than they take.
void require_paged_decode_attention(int64_t head_dim, at::Device device);

}  // namespace sluice::models
