#include "models/layers/feed_forward/feed_forward.h"

#include "models/config/config_families.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/mlp.h"

namespace sluice::models {

const FeedForward& feed_forward_of(const ModelConfig& config) {
  if (config.family != nullptr && config.family->feed_forward != nullptr) return *config.family->feed_forward;
  if (config.experts.any()) return kExperts;
  return kMlp;
}

const FeedForward& feed_forward_of(const Weights& weights) { return weights.network ? *weights.network->kind : kMlp; }

}  // namespace sluice::models
