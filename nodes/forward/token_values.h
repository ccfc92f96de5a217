#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "models/forward/transformer.h"
#include "nodes/forward/ragged.h"

namespace sluice::nodes {

/// What a value head makes of the tokens at `places` [N] (int64, into those of `samples`), each of which has seen all tokens of
/// its sample up to itself.
///
/// returns [N] float32, differentiable in the weights that need a gradient. At least one place.
at::Tensor token_values(const models::Transformer& model, const RaggedSamples& samples, const at::Tensor& places);

/// Places of the last token of each sample, none of which is empty: [S] int64.
at::Tensor last_tokens(std::span<const int64_t> sample_offsets);

}  // namespace sluice::nodes
