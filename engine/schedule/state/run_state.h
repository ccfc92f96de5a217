#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpointer.h"
#include "engine/checkpoint/own_parts.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/contract/world/world.h"
#include "engine/observe/activity.h"
#include "engine/observe/clock.h"
#include "engine/observe/iteration_log.h"
#include "engine/observe/version_arrivals.h"
#include "engine/plan/filter_streams.h"
#include "engine/plan/plan.h"
#include "engine/ranks/roll_call.h"
#include "engine/schedule/state/coming_versions.h"
#include "engine/schedule/state/failure.h"
#include "engine/schedule/state/filter_tally.h"
#include "engine/schedule/state/iteration_cutoff.h"
#include "engine/schedule/state/own_ends.h"
#include "engine/schedule/state/packet.h"
#include "engine/schedule/state/path_progress.h"
#include "engine/schedule/state/traffic.h"
#include "engine/schedule/state/version_gate.h"
#include "engine/schedule/state/work_in_progress.h"

namespace sluice::engine {

class SamplersThere;

/// What the parts of one path share.
struct PathState {
  struct Budgets {
    std::unique_ptr<TokenBudget> admitted;
    std::unique_ptr<TokenBudget> trained;
  };

  PathState(const PlanPath& plan_, Budgets budgets, int64_t slots, std::function<void()> on_verdict)
      : plan(plan_),
        budget(std::move(budgets.admitted)),
        trained(std::move(budgets.trained)),
        tally(slots, std::move(on_verdict)) {}

  int64_t in_flight() const { return budget->in_flight() + (trained ? trained->in_flight() : 0); }
  int64_t take_peak() { return budget->take_peak() + (trained ? trained->take_peak() : 0); }

  const PlanPath& plan;
  const std::unique_ptr<TokenBudget> budget;   // that groups are admitted against
  const std::unique_ptr<TokenBudget> trained;  // where ranks share the making: what they go on with when they are made; else null
  FilterTally tally;
  Milestone version_wanted;  // the oldest version that the path still samples from
};

/// What the parts of one run share. Owned by the driver; every member is thread-safe by itself or constant.
struct RunState {
  const Plan& plan;
  const Clock& clock;
  Reductions& reductions;
  const World world;  // of this rank
  WorkInProgress in_progress;
  ColumnSpecs column_specs;  // by index of Plan::columns
  FilterStreams filter_streams;
  ByteMeter columns;
  std::deque<PathState>& paths;  // by index of Plan::paths
  PathProgress progress;
  std::map<std::string, VersionGate> gates;  // by model that is published
  Activity activity;
  Traffic traffic;
  FailureSlot failure;
  FirstFailure cut_short;  // why the run ends before its time; it is saved, and has failed then
  IterationLog log;        // of the nodes, in their order, and of what the ranks measure of themselves
  OwnEnds own_ends;
  Checkpointer* checkpointer;  // null: nothing is saved, or by another rank
  OwnParts* own_parts;         // what this rank saves for that one; null: nothing
  IterationCutoff cutoff;
  std::map<std::string, Milestone> trained;                      // by model: iterations that its live weights were trained for
  const std::map<std::string, std::shared_ptr<Model>> received;  // by name: that this rank samples from and others train
  const std::shared_ptr<ComingVersions> coming;                  // of these
  const std::shared_ptr<RollCall> roll_call;                     // of rank 0 with roles; else null
  SamplersThere* samplers = nullptr;                             // of a rank that trains, where they may be lost; else null
  std::atomic<int64_t> lost_ranks{0};                            // of these
  VersionArrivals arrivals;                                      // likewise
  std::atomic<bool> no_sampler_comes{false};  // no rank is left that makes groups, as all that train have agreed
  std::atomic<bool> interrupted{false};
  std::atomic<bool> asked_to_end{false};  // of several ranks: this one was interrupted, and tells the others
  std::atomic<bool> ends_on_all_ranks{false};
  const int main_path;              // index
  std::atomic<int64_t> iterations;  // that the run is to have: those of [pipeline], or fewer where stop_when ends it
  std::atomic<int64_t> steps{0};    // of intakes that took in or brought out something

  PathState& path_of(const PlanNode& node) { return paths[static_cast<size_t>(node.path)]; }

  int64_t tokens_in_flight() const {
    int64_t tokens = 0;
    for (const PathState& path : paths) tokens += path.in_flight();
    return tokens;
  }

  /// Some rank was interrupted, as all learn while iteration `iteration` is not reported: none has begun one that is not to be.
  void end_on_all_ranks(int64_t iteration) {
    const int64_t last = iteration + most_open_iterations();
    if (last < iterations) iterations = last;
    ends_on_all_ranks = true;
  }

  /// Iterations that may be begun and not reported. Where a report may end the run, none begins that it would end.
  int64_t most_open_iterations() const { return plan.schedule.policy_lag + (plan.pipeline.stop_when ? 1 : 2); }

  /// Grows whenever a group, a sample or a micro-batch gets on.
  int64_t work_done() const { return steps.load(std::memory_order_relaxed) + traffic.packets_done(); }

  bool stopping() const { return failure.failed(); }

  /// What other ranks add to an iteration is not complete, and nobody needs it.
  bool is_abandoned(int64_t iteration) const { return world.size > 1 && (stopping() || cutoff.drops(iteration)); }

  /// Some rank was interrupted before all was done, or the run was cut short. The same on all ranks once the run is over.
  bool ends_early() const { return interrupted || ends_on_all_ranks || (cutoff.closed() && log.reported() < iterations); }
};

}  // namespace sluice::engine
