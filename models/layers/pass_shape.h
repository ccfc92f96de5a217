#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "models/config/precision.h"

namespace sluice::models {

/// What a pass and its bytes depend on. Refers to the config.
struct PassShape {
  const ModelConfig& config;
  Precision precision = Precision::kFloat32;
  int64_t tokens = 0;        // that this rank computes
  int64_t ranks = 1;         // that compute the pass
  int64_t ring = 1;          // blocks that these make; see Segment
  int64_t expert_ranks = 1;  // that share out experts; likewise
  int64_t layer = 0;         // which is asked for: layers differ in their feed-forward networks

  PassShape of_layer(int64_t which) const {
    PassShape shape = *this;
    shape.layer = which;
    return shape;
  }

  bool rounds() const { return precision != Precision::kFloat32; }
  bool reads_normed() const { return config.norm_place != NormPlace::kAfter; }
  bool adds_normed() const { return config.norm_place != NormPlace::kBefore; }

  /// Of the residual stream, or its gradient: [T,H], float32.
  int64_t stream_bytes() const { return tokens * config.hidden_size * static_cast<int64_t>(sizeof(float)); }
};

/// What a part of a layer takes: what its forward keeps for the backward, and what the two allocate beside that, at most at a
/// time.
struct PartBytes {
  int64_t kept = 0, forward = 0, backward = 0;
};

/// What a half of a layer, attention or feed-forward network with the norms around it, takes beside what it is given.
struct SublayerBytes {
  int64_t kept = 0;      // for the backward
  int64_t keeping = 0;   // by a forward that keeps, at most at a time, with what it keeps
  int64_t forward = 0;   // by a forward without a gradient, at most at a time
  int64_t backward = 0;  // by the backward, at most at a time, beside what is kept
};

constexpr int64_t if_there(bool there, int64_t bytes) { return there ? bytes : 0; }

}  // namespace sluice::models
