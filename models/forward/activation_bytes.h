#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "models/config/precision.h"

namespace sluice::models {

/// One pass over a packed micro-batch.
struct ModelPass {
  bool training = false;       // forward, backward and optimizer step; otherwise a forward without gradient
  bool value_head = false;     // one number a token instead of log-probabilities
  int64_t tokens = 0;          // of the micro-batch, every one taken to be an action
  int64_t longest_sample = 0;  // tokens
  int64_t threads = 1;
  int64_t ranks = 1;         // that compute it together, a segment each
  int64_t ring = 1;          // blocks that these make; see Segment
  int64_t expert_ranks = 1;  // likewise, that share out experts
  Precision precision = Precision::kFloat32;
  bool recompute = false;  // a layer keeps its input alone: ActivationCheckpointing::kLayer
};

/// What a pass takes at its peak, beside weights, gradients, optimizer state and columns.
struct ActivationBytes {
  int64_t tensors = 0;  // activations, what the backward keeps, gradients under way, the inputs that are gathered from columns
  int64_t scratch = 0;  // of kernels, on each thread; tables of rotary positions; sums of the rows of a softmax

  int64_t total() const { return tensors + scratch; }
};

/// Put together of what each part says of itself, beside the code that allocates (decoder_layer_bytes(), FeedForward::bytes(),
/// action_logprobs_bytes()). An upper bound that is reached up to some small tensors where all tokens are actions. Of several
/// ranks the one that has the micro-batch.
ActivationBytes activation_bytes(const ModelConfig& config, const ModelPass& pass);

}  // namespace sluice::models
