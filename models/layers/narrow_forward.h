#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// Whether a model that has `weight` is computed as here: it is narrower than the operands that its products should have. With
/// Precision::kBfloat16 a weight of bfloat16 is one that was rounded before, and sums are float32 all the same.
inline bool computes_narrow(const at::Tensor& weight, Precision precision) {
  return precision == Precision::kFloat32 && at::isReducedFloatingType(weight.scalar_type());
}

/// The forward pass of weights in bfloat16 or float16, rounded where Hugging Face transformers rounds: after every product,
/// norm, activation and sum. Rounding elsewhere, or more exactly, gives other numbers by up to a tenth of a nat. No gradient.
///
/// tokens, sample_offsets, routes  as Transformer::hidden_states() has them
/// returns                         [T,H] after the last norm, in the dtype of the weights
at::Tensor narrow_hidden_states(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens,
                                std::span<const int64_t> sample_offsets, const at::Tensor& routes);

/// hidden[c,H] head[V,H]^T, capped (see ModelConfig::logit_softcap; 0: not), each step rounded to the dtype of `head`: float32
/// [c,V].
at::Tensor narrow_logits(const at::Tensor& hidden, const at::Tensor& head, double softcap);

}  // namespace sluice::models
