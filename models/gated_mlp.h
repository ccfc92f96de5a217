#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models {

/// residual + (silu(x gate^T) * (x up^T)) down^T: the feed-forward network of a decoder layer. float32 on the CPU.
/// Source: Shazeer 2020, "GLU variants improve transformer", eq. 5.
///
/// residual [T,H]
/// x        [T,H]
/// gate, up [I,H]
/// down     [H,I]
/// returns  [T,H]  differentiable in all arguments
///
/// Keeps x and the two projections, 2 T I floats; the product behind the activation is computed again in the backward.
at::Tensor gated_mlp(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up,
                     const at::Tensor& down);

}  // namespace sluice::models
