#pragma once

#include <string>

#include "base/problem.h"
#include "cli/init/init_text.h"
#include "engine/contract/registry.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// A pipeline that is valid and fits.
struct FittedPipeline {
  InitPipeline pipeline;
  engine::Plan plan;
  Problems warnings;
  std::string too_much;  // what it would need with all weights trained and all tokens, of what there is; empty: that fits
};

/// Tries `wanted` with all weights trained, else with adapters, else with adapters of a model in bfloat16, each with fewer tokens
/// where that suffices, until one leaves some memory; else the first that fits. `file` is what its text is called, `folder` is
/// where its relative paths start. Throws UserError where nothing fits, or where something else than the memory is wrong.
FittedPipeline fit_pipeline_to_memory(const engine::Registry& registry, const InitPipeline& wanted, const std::string& file,
                                      const std::string& folder);

}  // namespace sluice::cli
