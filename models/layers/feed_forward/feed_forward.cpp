#include "models/layers/feed_forward/feed_forward.h"

#include "models/config/config_families.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/mlp.h"

namespace sluice::models {

const FeedForward& feed_forward_of(const ModelConfig& config, int64_t layer) {
  if (config.family != nullptr && config.family->feed_forward != nullptr) return *config.family->feed_forward;
  if (config.is_mixture(layer)) return kExperts;
  return kMlp;
}

const FeedForward& feed_forward_of(const LayerWeights& layer) { return layer.network ? *layer.network->kind : kMlp; }

}  // namespace sluice::models
