#include "engine/run/executor_start.h"

#include <algorithm>

namespace sluice::engine {

ExecutorStart executor_start(const Plan& plan, const PlanExecutor& executor) {
  const bool samples = std::ranges::any_of(plan.paths, [&](const PlanPath& path) {
    return path.rollout && !path.measures() && plan.nodes[static_cast<size_t>(*path.rollout)].executor == executor.name;
  });
  return {.threads = executor.threads, .samples = samples};
}

}  // namespace sluice::engine
