#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "models/layers/layer_pass.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// A decoder layer, x[T,H] to [T,H], float32: differentiable in x and the weights that need a gradient. One step of the backward,
/// which keeps operands and what the norms were given; with pass->recompute it keeps x alone, and gives the same bits. Without a
/// gradient, and if nobody else has x, x is gone when attention has been added to it.
at::Tensor decoder_layer(at::Tensor x, const LayerWeights& layer, int64_t index, std::shared_ptr<const LayerPass> pass);

/// What the layer that `shape` names takes beside x. `keeping` is what the backward takes to compute a layer again, too.
SublayerBytes decoder_layer_bytes(const PassShape& shape);

}  // namespace sluice::models
