#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <span>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/norm.h"
#include "models/layers/pass_shape.h"
#include "models/layers/ragged_attention.h"

namespace sluice::models {

/// What all layers of one forward pass and its backward share. Immutable.
struct LayerPass {
  LayerPass(const ModelConfig& of, std::span<const int64_t> sample_offsets, Precision computed_in, bool recomputes)
      : config(of), layout(of, sample_offsets), precision(computed_in), recompute(recomputes) {}

  const ModelConfig config;
  const RaggedLayout layout;
  const Precision precision;
  const bool recompute;  // a layer keeps its input alone and computes the rest again in the backward

  Norm norm(const at::Tensor& weight, const at::Tensor& bias = {}) const {
    return {.kind = config.norm, .eps = config.norm_eps, .weight = weight, .bias = bias};
  }
  PassShape shape() const { return {config, precision, layout.tokens()}; }
};

}  // namespace sluice::models
