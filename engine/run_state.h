#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/activity.h"
#include "engine/checkpointer.h"
#include "engine/failure.h"
#include "engine/iteration_log.h"
#include "engine/micro_batch.h"
#include "engine/plan.h"
#include "engine/token_budget.h"
#include "engine/version_gate.h"

namespace sluice::engine {

/// What the parts of one run share. Owned by the run; every member is thread-safe by itself or constant.
struct RunState {
  const Plan& plan;
  ColumnSlots slots;  // by index of Plan::columns
  ByteMeter columns;
  TokenBudget budget;
  VersionGate gate;
  Activity activity;
  FailureSlot failure;
  IterationLog log;
  Checkpointer checkpointer;
  std::map<std::string, Milestone> trained;  // by model: iterations that its live weights were trained for
  std::atomic<bool> interrupted{false};

  bool stopping() const { return failure.failed(); }
};

/// What travels along the edges of the flow graph: a micro-batch, or the end of an iteration. A handle; forks copy it.
struct Packet {
  int64_t sequence = 0;               // counts all packets of a run; joins match on it
  Iteration iteration;
  std::shared_ptr<BatchState> batch;  // null: the end of the iteration
};

}  // namespace sluice::engine
