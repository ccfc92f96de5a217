#pragma once

#include <cstdint>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// Whether [checkpoint] every_iterations has the run saved after the iteration while it goes on. The last one is left to the end
/// of the run, when all its other files are complete: a run folder with that checkpoint is done.
inline bool saved_by_count(const Plan& plan, int64_t iteration) {
  const int64_t every = plan.checkpoint.every_iterations;
  return every > 0 && (iteration + 1) % every == 0 && iteration + 1 < plan.pipeline.iterations;
}

}  // namespace sluice::engine
