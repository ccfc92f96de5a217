#include "models/layers/feed_forward/feed_forward.h"

#include "models/config/config_families.h"
#include "models/layers/feed_forward/mlp.h"

namespace sluice::models {

const FeedForward& feed_forward_of(const ModelConfig& config) {
  if (config.family == nullptr || config.family->feed_forward == nullptr) return kMlp;
  return *config.family->feed_forward;
}

const FeedForward& feed_forward_of(const Weights& weights) { return weights.network ? *weights.network->kind : kMlp; }

}  // namespace sluice::models
