#pragma once

#include <cstdint>

#include "models/config/config.h"

namespace sluice::models {

/// What happens to the scores of attention between the product and the softmax.
struct AttentionScores {
  double scale = 1;
  double softcap = 0;  // ModelConfig::attention_softcap; 0: none
  int64_t window = 0;  // tokens that a token sees, itself included; 0: all before it
};

inline AttentionScores scores_of(const ModelConfig& config, int64_t layer) {
  return {.scale = config.score_scale(), .softcap = config.attention_softcap, .window = config.window_of(layer)};
}

}  // namespace sluice::models
