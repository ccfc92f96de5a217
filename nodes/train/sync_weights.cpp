#include "nodes/train/sync_weights.h"

#include "nodes/models/model_parts.h"

namespace sluice::nodes {

void SyncWeights::describe(engine::Contract<SyncWeightsParams>& c) {
  c.type("sync_weights", "publishes the trained weights for sampling");
  c.model("model", &SyncWeightsParams::model, engine::ModelUse::kPublishes)
      .required()
      .doc("the model that is trained and sampled from");
}

SyncWeights::SyncWeights(const SyncWeightsParams& params, engine::NodeResources& resources)
    : publisher_(weight_publisher(resources, params.model)) {}

void SyncWeights::end_iteration(const engine::Iteration& iteration) { publisher_->publish(iteration.index + 1); }

}  // namespace sluice::nodes
