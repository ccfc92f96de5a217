#pragma once

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpointer.h"
#include "engine/contract/token_budget.h"
#include "engine/observe/activity.h"
#include "engine/observe/clock.h"
#include "engine/observe/iteration_log.h"
#include "engine/plan/filter_streams.h"
#include "engine/plan/plan.h"
#include "engine/schedule/failure.h"
#include "engine/schedule/filter_tally.h"
#include "engine/schedule/iteration_cutoff.h"
#include "engine/schedule/packet.h"
#include "engine/schedule/traffic.h"
#include "engine/schedule/version_gate.h"

namespace sluice::engine {

/// What the parts of one run share. Owned by the driver; every member is thread-safe by itself or constant.
struct RunState {
  const Plan& plan;
  const Clock& clock;
  Reducer& reducer;
  ColumnSlots slots;  // by index of Plan::columns
  FilterStreams streams;
  ByteMeter columns;
  TokenBudget& budget;
  VersionGate gate;
  FilterTally tally;
  Activity activity;
  Traffic traffic;
  FailureSlot failure;
  IterationLog log;
  Checkpointer* checkpointer;  // null: nothing is saved
  IterationCutoff ending;
  std::map<std::string, Milestone> trained;  // by model: iterations that its live weights were trained for
  std::atomic<bool> interrupted{false};
  std::atomic<int64_t> steps{0};  // of the intake that took in or brought out something

  /// Grows whenever a group, a sample or a micro-batch gets on.
  int64_t progress() const { return steps.load(std::memory_order_relaxed) + traffic.packets_done(); }

  bool stopping() const { return failure.failed(); }
};

}  // namespace sluice::engine
