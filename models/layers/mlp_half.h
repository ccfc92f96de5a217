#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/layer_pass.h"
#include "models/layers/residual.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// Tokens whose inner activations exist at a time beside what is kept: in the forward in float32. More in the backward, where
/// each time goes over the gradients of all weights.
constexpr int64_t kForwardTokens = 256, kBackwardTokens = 1024;

/// What the backward of the feed-forward half of a layer needs.
struct KeptMlp {
  KeptRead read;
  at::Tensor gate;  // [T,I], an operand: what goes into the activation
  at::Tensor up;    // [T,I]: what its result is multiplied with; undefined in a plain network
  KeptNorm added_norm;
};

/// x[T,H], float32, plus what the feed-forward network makes of it: (act(x gate^T) * (x up^T)) down^T, or without a gate
/// act(x up^T) down^T. The activation is of what was not rounded yet, as in generation. Fills `kept`; without it the inner
/// activations of all tokens never exist at a time, and x itself may become the result.
/// Source: Shazeer 2020, "GLU variants improve transformer".
at::Tensor mlp_forward(const LayerPass& pass, const LayerWeights& layer, at::Tensor x, KeptMlp* kept);

/// From the gradient of the result to that of x, in place; adds the gradients of the weights. Uses up `kept`.
void mlp_backward(const LayerPass& pass, const LayerWeights& layer, const KeptMlp& kept, const at::Tensor& grad);

}  // namespace sluice::models
