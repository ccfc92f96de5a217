#pragma once

#include "base/problem.h"
#include "engine/contract/spec/spec.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// Models that work on the same tokens must mean the same by them: an id of one vocabulary is another word in the next, and
/// training would go on with it. Compares the tokenizers in the folders of all models whose nodes read or write the column
/// tokens; weights are not loaded. Warns where the tokenizer of a model that is sampled from cannot be read; of the others that
/// is left to who loads them.
Problems check_vocabularies(const engine::Plan& plan, const engine::PipelineSpec& spec);

}  // namespace sluice::cli
