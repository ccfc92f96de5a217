#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/layers/feed_forward/routed_rows.h"
#include "models/layers/layer_pass.h"
#include "models/layers/weights.h"

namespace sluice::models {

// The experts of a mixture in training, on the CPU, where the ranks of a pass share them out (Segment::expert_ranks): each
// computes its own for the tokens of all. Results come back before any is added, so that each rank adds them in the order of the
// experts, and a row has the bits that a rank with all experts gives it. What goes over the ranks:
// models/layers/feed_forward/expert_exchange.h.
//
// Nothing of an expert is kept for the backward: its rows come again there, beside their gradients, and what is between its
// projections is computed again, of one round at a time. So a pass takes the same memory however tokens are routed, and that does
// not grow with the tokens of other ranks. Gradients of matrices are added by the owner alone, of the rows of all in the order of
// the tokens.

/// What the two allocate at most at a time.
int64_t shared_out_forward_bytes(const PassShape& shape);
int64_t shared_out_backward_bytes(const PassShape& shape);

/// out[T,H] += what the experts make of in[T,H]. Fills `counts` (ExpertExchange::counts_shape()).
void shared_out_forward(const LayerPass& pass, std::span<const LinearWeights> weights, const RoutedRows& routed,
                        const at::Tensor& counts, const at::Tensor& in, const at::Tensor& out);

/// From grad[T,H], of the result, adds to that of `in`, of_in[T,H]; of_weights[T,K] becomes that of the weights. `counts`: as the
/// forward left it.
void shared_out_backward(const LayerPass& pass, std::span<const LinearWeights> weights, const RoutedRows& routed,
                         const at::Tensor& counts, const at::Tensor& in, const at::Tensor& grad, float* of_weights,
                         const at::Tensor& of_in);

}  // namespace sluice::models
