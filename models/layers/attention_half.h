#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/layer_pass.h"
#include "models/layers/ragged_attention.h"
#include "models/layers/residual.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// What the backward of the attention half of a layer needs.
struct KeptAttention {
  KeptRead read;
  KeptNorm query_norm, key_norm;  // of what QkNorm says; x is kept as an operand
  AttentionOperands operands;
  Attended attended;
  KeptNorm added_norm;
};

/// x[T,H], float32, plus what attention makes of it. Fills `kept`.
at::Tensor attention_forward(const LayerPass& pass, const LayerWeights& layer, int64_t window, const at::Tensor& x,
                             KeptAttention& kept);

/// From the gradient of the result to that of x, in place; adds the gradients of the weights. Uses up `kept`.
void attention_backward(const LayerPass& pass, const LayerWeights& layer, const KeptAttention& kept, const at::Tensor& grad);

}  // namespace sluice::models
