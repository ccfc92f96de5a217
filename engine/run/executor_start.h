#pragma once

#include "engine/plan/plan.h"

namespace sluice::engine {

/// An executor whose thread begins.
struct ExecutorStart {
  int threads = 1;       // cores that it may use
  bool samples = false;  // what is trained is sampled here, maybe while it is trained elsewhere
};

ExecutorStart executor_start(const Plan& plan, const PlanExecutor& executor);

}  // namespace sluice::engine
