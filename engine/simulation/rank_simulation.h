#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/observe/costs.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"
#include "engine/schedule/driver.h"
#include "engine/simulation/cost_model.h"
#include "engine/simulation/simulated_network.h"
#include "engine/simulation/simulated_nodes.h"
#include "engine/simulation/timeline.h"
#include "engine/simulation/virtual_clock.h"
#include "engine/simulation/virtual_executor.h"

namespace sluice::engine {

/// One rank of a simulated run: the scheduler of a run, on virtual executors, and what is noted down while it goes on. Time is
/// accounted for when something changes: whoever changes it calls settle() before. One thread.
class RankSimulation {
 public:
  /// What became of the time of an executor, in nanoseconds.
  struct Use {
    int64_t busy = 0, gap = 0, no_credit = 0, no_weights = 0, no_input = 0;
  };

  /// What became of the time of the rank: some executor works, or none does, and what the rank waits for.
  struct RankUse {
    int64_t busy = 0;
    int64_t for_weights = 0;  // with roles: others train what it samples from next
    int64_t for_groups = 0;   // with roles: others make or give them, or there is no credit for them
    int64_t for_others = 0;   // other ranks have not come yet to where this one is
    int64_t for_network = 0;  // it is on its way
  };

  /// What the lines of metrics.jsonl add up to; seconds are means over all ranks.
  struct Reported {
    int64_t iterations = 0;
    std::vector<double> iteration_seconds;
    double rollout_seconds = 0, train_seconds = 0, overlap_seconds = 0, tail_seconds = 0;
    int64_t tokens = 0, sampled_tokens = 0;  // of all ranks
  };

  /// What is given as a reference outlives it.
  RankSimulation(const Plan& plan, const Costs& costs, const VirtualClock& clock, SimulatedNetwork& network, int rank,
                 std::vector<WorkObserver*> observers);
  ~RankSimulation();

  void start();

  /// Executors that are idle take up what could start now.
  void begin();

  /// When the next work ends; kNever: nothing is under way.
  int64_t next_ns() const;

  /// What ends now does, in the order of the executors.
  void end();

  /// Accounts for the time since the last call.
  void settle();

  /// After the last event.
  void finish();

  const std::vector<Use>& uses() const { return uses_; }
  const RankUse& use() const { return use_; }
  const Reported& reported() const { return reported_; }
  const BusySeconds& rest() const { return rest_; }  // after the last line
  const std::vector<std::string>& notes() const { return costs_.notes(); }
  int64_t last_work_ns() const { return last_work_ns_; }
  std::vector<double> tokens_in_flight(size_t parts) const { return in_flight_->means(parts); }  // of rank 0
  RunStatus status() const { return driver_.status(); }

  int rank() const { return rank_; }
  bool works() const;  // some executor does, other than those that wait for answers of other ranks

  /// It has something left to do.
  bool is_stuck() { return driver_.in_progress().count() > 0 && !driver_.state().stopping(); }

  /// Throws what ended the run, if something did.
  void rethrow() { driver_.state().failure.rethrow(); }

 private:
  void add(const IterationReport& report);
  int64_t& idle_time(Use& use, Driver::Idle reason) const;
  int64_t RankUse::*waited() const;
  bool waits_for_answers() const;
  bool some_executor_works(bool forward) const;

  const Plan& plan_;
  const int rank_;
  const VirtualClock& clock_;
  const SimulatedNetwork::Waits& waits_;
  CostModel costs_;
  SimulatedWorkload simulated_;
  Driver driver_;
  std::vector<std::unique_ptr<VirtualExecutor>> executors_;
  std::vector<Use> uses_;  // by index of Plan::executors
  RankUse use_;
  Reported reported_;
  BusySeconds rest_;
  std::optional<Timeline> in_flight_;  // of rank 0
  int64_t settled_ns_ = 0, last_work_ns_ = 0;
};

}  // namespace sluice::engine
