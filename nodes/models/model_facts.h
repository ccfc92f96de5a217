#pragma once

#include "engine/contract/model.h"
#include "models/config/config.h"
#include "models/config/output_head.h"
#include "nodes/models/language_model_params.h"
#include "nodes/models/weights/trained_parameters.h"

namespace sluice::nodes {

// What follows from the parameters of a model before anything is loaded.

models::Head head_of(const LanguageModelParams& params);

/// Whether a backward computes layers again. chosen: by who knows the memory, where the choice is left to them.
bool recomputes(const LanguageModelParams& params, bool chosen);

/// Whether passes of a frozen model can read what is sampled from: engine::ModelFacts::reads_published. A value head is not
/// there.
bool reads_published(const LanguageModelParams& params);

/// Of its weights. Throws UserError for a pattern or a target that means nothing of the model.
ParameterBytes bytes_of(const models::ModelConfig& config, const LanguageModelParams& params);

engine::ModelFacts facts_of(const models::ModelConfig& config, const LanguageModelParams& params, const ParameterBytes& bytes);

}  // namespace sluice::nodes
