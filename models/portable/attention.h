#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

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

/// Whether the library's flash attention (Dao 2023, "FlashAttention-2") takes these queries [T,Nq,D]: it has that for the device,
/// the element type and the head size, and there is no soft cap.
bool takes_flash(const at::Tensor& query, const AttentionScores& scores);

/// By which sample a row belongs to: int32 [S+1] on the device, and the longest sample.
struct Begins {
  at::Tensor there;
  int64_t longest = 0;
};

/// Causal flash attention of queries [T,Nq,D], samples of `new_tokens`, over keys and values [L,Nk,D], samples of `tokens`: the
/// queries are the last of their sample.
at::Tensor flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Begins& new_tokens,
                           const Begins& tokens, const AttentionScores& scores);

/// Where the samples of a ragged batch begin, as the attention of all its layers reads it. A handle.
struct SampleOffsets {
  std::vector<int64_t> here;  // [S+1]
  at::Tensor there;           // [S+1] int32 on the device; undefined where its attention takes samples one by one
  int64_t longest = 0;        // tokens of a sample
};

SampleOffsets sample_offsets(std::span<const int64_t> offsets, at::Device device);

/// Causal attention inside each sample of a ragged batch: one call of flash attention over all samples where that takes them,
/// elsewhere sample by sample.
///
/// query       [T,Nq,D]
/// key, value  [T,Nk,D]
/// offsets     [S+1] into T
/// returns     [T,Nq,D]
at::Tensor ragged_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const SampleOffsets& offsets,
                            const AttentionScores& scores);

}  // namespace sluice::models::portable
