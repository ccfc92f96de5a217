#pragma once

#include "nodes/models/language_model_params.h"
#include "nodes/models/model_problems.h"

namespace sluice::nodes {

/// What of the table of a model cannot be where its weights are to be quantised.
void find_unquantisable(const LanguageModelParams& params, ModelProblems& problems);

/// Likewise, where its folder holds quantised ones (LanguageModelParams::stored).
void find_unquantisable_folder(const LanguageModelParams& params, ModelProblems& problems);

}  // namespace sluice::nodes
