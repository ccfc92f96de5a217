#pragma once

#include <cstdint>

#include "models/layers/pass_shape.h"
#include "models/layers/ragged_attention.h"

namespace sluice::models {

/// Attention of the queries of the layout's block over all keys of the pass that they see, where the ranks of a ring have a block
/// each: all of them call it at the same time. With one block it is ragged_attention().
///
/// A sample that goes over several blocks is attended a pair of blocks at a time, and what comes of it put together by
/// log-sum-exp: each rank has its own block, and of one other either the keys and values or the queries. Causal attention leaves
/// the first blocks little to do, so a rank computes the pairs of its queries with the half of the ring before it, and those of
/// its keys with what is further behind: all compute alike. A pair that no sample goes over is neither sent nor computed.
///
/// Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers" (arXiv 2310.01889), section 3; Li et al. 2023,
/// "DistFlashAttn" (arXiv 2310.03294), section 3.1, for the balance.
Attended ring_attention(const AttentionOperands& in, const RaggedLayout& layout);

/// As ragged_attention_backward(), with the gradients in the place of `in`.
void ring_attention_backward(const AttentionOperands& in, const Attended& result, const at::Tensor& grad_output,
                             const RaggedLayout& layout);

/// What the two take beside what they are given and give, at most at a time.
PartBytes ring_attention_bytes(const PassShape& shape);

}  // namespace sluice::models
