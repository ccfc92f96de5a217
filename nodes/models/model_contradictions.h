#pragma once

#include "models/config/config.h"
#include "nodes/models/language_model_params.h"
#include "nodes/models/model_problems.h"

namespace sluice::nodes {

// What the table of a model may not say, though each of its keys may have its value.

/// What shows without the model's folder.
void find_contradictions(const LanguageModelParams& params, ModelProblems& problems);

/// A loss of routers of which none is trained.
void find_untrained_routers(const LanguageModelParams& params, const models::ModelConfig& config, ModelProblems& problems);

}  // namespace sluice::nodes
