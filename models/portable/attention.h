#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/config/config.h"

namespace sluice::models::portable {

/// What happens to scores between the product and the softmax.
struct Scores {
  double scale = 1;
  double softcap = 0;  // ModelConfig::attention_softcap; 0: none
  int64_t window = 0;  // tokens that a token sees, itself included; 0: all before it
};

inline Scores scores_of(const ModelConfig& config, int64_t layer) {
  return {.scale = config.score_scale(), .softcap = config.attention_softcap, .window = config.window_of(layer)};
}

/// Attention of n queries over L keys in each of B sequences; `seen` says which, whatever scores.window is.
///
/// query       [B,Nq,n,D]
/// key, value  [B,Nk,L,D]
/// seen        [B or 1,1,n,L] bool; a query sees one key at least
/// returns     [B,Nq,n,D]
at::Tensor masked_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& seen,
                            const Scores& scores);

/// Causal attention inside each sample of a ragged batch. On a GPU, in bfloat16 or float16, one call of the library's flash
/// attention over all samples (Dao 2023, "FlashAttention-2"), if it has the head size and there is no soft cap; elsewhere sample
/// by sample.
///
/// query       [T,Nq,D]
/// key, value  [T,Nk,D]
/// offsets     [S+1] into T
/// returns     [T,Nq,D]
at::Tensor ragged_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            std::span<const int64_t> offsets, const Scores& scores);

}  // namespace sluice::models::portable
