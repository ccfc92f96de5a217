#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"
#include "models/weights.h"

namespace sluice::models {

/// The weights of a decoder layer's feed-forward network. What it does not have is undefined.
struct MlpWeights {
  at::Tensor gate, up, down;                 // [I,H], [I,H], [H,I]; no gate: a plain network
  at::Tensor gate_bias, up_bias, down_bias;  // [I], [I], [H]
  Adapter gate_adapter, up_adapter, down_adapter;
};

/// Gated: (act(x gate^T) * (x up^T)) down^T; plain: act(x up^T) down^T; with the biases and adapters that there are. float32
/// on the CPU.
/// Source: Shazeer 2020, "GLU variants improve transformer".
///
/// x        [T,H]
/// residual [T,H] to add, or undefined
/// returns  [T,H]  differentiable in all arguments; those that need no gradient cost nothing in the backward
///
/// Keeps x and the projections before the activation, 2 T I floats or T I; what is behind it is computed again in the backward.
at::Tensor mlp(const at::Tensor& residual, const at::Tensor& x, const MlpWeights& weights, Activation activation);

}  // namespace sluice::models
