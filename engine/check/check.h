#pragma once

#include <optional>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// The outcome of a check: a plan if there is no error among the problems (there may be warnings).
struct CheckResult {
  std::optional<Plan> plan;
  Problems problems;
  std::optional<Plan> too_large = {};  // in its place, where all that is wrong is that the memory is too small
};

/// Proves a pipeline for a run on so many ranks, 0: as many as its roles have, or one. Resolves types, binds parameters, and
/// checks graph, columns, models, executors and capacity. Collects all problems; never throws for what a user wrote.
CheckResult check(const PipelineSpec& spec, const Registry& registry, int ranks = 0);

}  // namespace sluice::engine
