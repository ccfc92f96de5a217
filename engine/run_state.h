#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "engine/activity.h"
#include "engine/checkpointer.h"
#include "engine/clock.h"
#include "engine/ending.h"
#include "engine/failure.h"
#include "engine/filter_tally.h"
#include "engine/iteration_log.h"
#include "engine/packet.h"
#include "engine/plan.h"
#include "engine/streams.h"
#include "engine/token_budget.h"
#include "engine/traffic.h"
#include "engine/version_gate.h"

namespace sluice::engine {

/// What the parts of one run share. Owned by the driver; every member is thread-safe by itself or constant.
struct RunState {
  const Plan& plan;
  const Clock& clock;
  Reducer& reducer;
  ColumnSlots slots;  // by index of Plan::columns
  Streams streams;
  ByteMeter columns;
  TokenBudget& budget;
  VersionGate gate;
  FilterTally tally;
  Activity activity;
  Traffic traffic;
  FailureSlot failure;
  IterationLog log;
  Checkpointer* checkpointer;  // null: nothing is saved
  Ending ending;
  std::map<std::string, Milestone> trained;  // by model: iterations that its live weights were trained for
  std::atomic<bool> interrupted{false};
  std::atomic<int64_t> steps{0};  // of the intake that took in or brought out something

  /// Grows whenever a group, a sample or a micro-batch gets on.
  int64_t progress() const { return steps.load(std::memory_order_relaxed) + traffic.packets_done(); }

  bool stopping() const { return failure.failed(); }
};

}  // namespace sluice::engine
