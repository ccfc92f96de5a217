#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"
#include "models/layers/ragged_attention.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// x[T,H], float32: what the first layer reads of tokens[T]. Differentiable in the tables. Throws InternalError where a sample is
/// longer than the table of positions.
at::Tensor embed(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens, const RaggedLayout& layout);

}  // namespace sluice::models
