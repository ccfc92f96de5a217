#pragma once

#include <memory>

#include "engine/contract/model.h"
#include "nodes/models/language_model.h"
#include "nodes/models/language_model_params.h"

namespace sluice::nodes {

/// A model of a run, as this rank holds it: with live weights, packed for sampling alone, made from another model, or received
/// from those that train it. Throws UserError for a folder that cannot be read.
std::shared_ptr<LanguageModel> load_model(const LanguageModelParams& params, const engine::ModelUsage& usage);

}  // namespace sluice::nodes
