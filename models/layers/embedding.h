#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/ragged_attention.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// x[T,H], float32: what the first layer reads of tokens[T]. Rows of the embedding are rounded to `precision`, as those of the
/// head, which may be the same table; learned positions are not. Differentiable in the tables, as if nothing was rounded. Throws
/// InternalError where a sample is longer than the table of positions.
at::Tensor embed(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens, const RaggedLayout& layout,
                 Precision precision);

}  // namespace sluice::models
