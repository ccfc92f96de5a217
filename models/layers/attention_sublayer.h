#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/layer_pass.h"
#include "models/layers/pass_shape.h"
#include "models/layers/ragged_attention.h"
#include "models/layers/residual.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// What the backward of a layer's attention and of the norms around it needs.
struct KeptAttention {
  KeptRead read;
  KeptNorm query_norm, key_norm;  // of what QkNorm says; x is kept as an operand
  AttentionOperands operands;     // of the heads that attention has here
  Attended attended;              // of the rows that are here; its sums are of those heads
  KeptNorm added_norm;
};

/// x[T,H], float32, plus what attention of layer `index` makes of it. Fills `kept`.
at::Tensor attention(const LayerPass& pass, const LayerWeights& layer, int64_t index, const at::Tensor& x, KeptAttention& kept);

/// From the gradient of the result to that of x, in place; adds the gradients of the weights. Uses up `kept`.
void attention_backward(const LayerPass& pass, const LayerWeights& layer, const KeptAttention& kept, const at::Tensor& grad);

SublayerBytes attention_bytes(const PassShape& shape);

/// What adapters of its matrices widen of operands, at most at a time.
int64_t attention_adapter_bytes(const PassShape& shape);

}  // namespace sluice::models
