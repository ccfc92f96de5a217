#pragma once

#include "base/problem.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// Warns where prompts are written by a chat template whose turns end with a special token that ends no sample of the model, as
/// with base models that have the template of their instruct model: every response would go on after the end of its turn.
/// Reads the model's folder; what is wrong with it, others say.
Problems check_turn_ends(const engine::Plan& plan, const engine::PipelineSpec& spec);

}  // namespace sluice::cli
