#pragma once

#include "base/problem.h"
#include "engine/contract/spec/spec.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// A model that guesses for another one (`draft` of a node that samples): it must be frozen, have as many tokens, and be where
/// the other is; and there must be something to guess, also from the text alone (`speculation`). That tokens mean the same is
/// check_vocabularies()'s to say.
Problems check_drafts(const engine::Plan& plan, const engine::PipelineSpec& spec);

}  // namespace sluice::cli
