#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "models/layers/layer_pass.h"
#include "models/layers/pass_shape.h"
#include "models/layers/residual.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// What the backward of a layer's feed-forward network and of the norms around it needs.
struct KeptFeedForward {
  KeptRead read;
  std::vector<at::Tensor> inner;  // FeedForward::kept()
  KeptNorm added_norm;
};

/// x[T,H], float32, plus what the layer's feed-forward network (feed_forward.h) makes of it. Fills `kept`; without it x itself
/// may become the result.
at::Tensor feed_forward(const LayerPass& pass, const LayerWeights& layer, int64_t index, at::Tensor x, KeptFeedForward* kept);

/// From the gradient of the result to that of x, in place; adds the gradients of the weights. Uses up `kept`. `index`: of the
/// layer.
void feed_forward_backward(const LayerPass& pass, const LayerWeights& layer, int64_t index, const KeptFeedForward& kept,
                           const at::Tensor& grad);

/// Of the layer that `shape` names.
SublayerBytes feed_forward_bytes(const PassShape& shape);

}  // namespace sluice::models
