#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/layers/feed_forward/router_training.h"
#include "models/layers/segment.h"
#include "models/layers/weights.h"

namespace sluice::models::portable {

struct Pass {
  Precision precision = Precision::kFloat32;     // see LayerMaths
  bool checkpointing = false;                    // keep only what goes into each layer; its backward computes the layer again
  std::shared_ptr<RouterTraining> routers = {};  // see Transformer::routers()
  at::Tensor routes = {};                        // on the device of the weights; see Transformer::hidden_states()
  Segment segment = {};                          // what this rank computes, without a ring and with all experts; by itself all
};

/// Final hidden states, after the last norm, of every token of a ragged batch; on the device of the weights. Every ModelConfig.
///
/// tokens, sample_offsets  as Transformer::hidden_states() has them; tokens of the segment, on the device of the weights
/// returns                 [n,H] float32; differentiable in the weights that need a gradient
at::Tensor hidden_states(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens,
                         std::span<const int64_t> sample_offsets, const Pass& pass = {});

}  // namespace sluice::models::portable
