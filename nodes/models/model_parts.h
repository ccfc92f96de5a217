#pragma once

#include <memory>
#include <string>

#include "engine/contract/node.h"

namespace sluice::nodes {

class ForwardModel;
class ModelText;
class SampledWeights;
class TrainedModel;
class WeightPublisher;

// The part of a model that a node works with, of the model called `name` in its resources. A node asks for the parts that it
// needs and no more; its contract says what it does to the model. The pointer keeps the whole model. Throws InternalError
// when the model was not given to the node or has no such part, which a checked plan rules out.

/// Tokenizer, chat template, end of sequence: nodes/models/model_text.h. No weights.
std::shared_ptr<const ModelText> model_text(const engine::NodeResources& resources, const std::string& name);

/// The live weights, for passes without training (ModelUse::kReads): nodes/models/passes/forward_model.h.
std::shared_ptr<const ForwardModel> forward_model(const engine::NodeResources& resources, const std::string& name);

/// The published versions (kSamples): nodes/models/sampling/sampled_weights.h.
std::shared_ptr<const SampledWeights> sampled_weights(const engine::NodeResources& resources, const std::string& name);

/// What is trained (kUpdates): nodes/models/trained_model.h.
std::shared_ptr<TrainedModel> trained_model(const engine::NodeResources& resources, const std::string& name);

/// The port that publishes (kPublishes): nodes/models/weights/weight_publisher.h.
std::shared_ptr<WeightPublisher> weight_publisher(const engine::NodeResources& resources, const std::string& name);

}  // namespace sluice::nodes
