#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/state/run_state.h"
#include "engine/schedule/state/workload.h"

namespace sluice::engine {

/// Index of an executor in the plan.
int executor_index(const Plan& plan, const std::string& name);

/// Hosts one node of a run, of whatever kind: here its iterations begin and end, its state goes to the checkpointer, its metrics
/// are combined over the ranks, and whoever waits for the models that it trains or publishes is told. Owns the node. Used by the
/// node's executor only; what the node throws goes through.
class StageHost {
 public:
  /// `rewinds`: after each iteration the node is as it was at first, so that it gives the same groups again.
  StageHost(RunState& state, int node, Workload::Part part, bool rewinds = false);

  StageHost(const StageHost&) = delete;  // metrics on their way refer to it
  StageHost& operator=(const StageHost&) = delete;

  /// The node, as what its type was registered as.
  template <class T>
  T& as() {
    T* const typed = dynamic_cast<T*>(part_.node.get());
    SLUICE_CHECK(typed != nullptr, "a node is not of the kind that its type was registered as");
    return *typed;
  }

  int index() const { return index_; }
  const PlanNode& plan() const { return plan_; }
  int executor() const { return executor_; }
  MetricsRecorder& metrics() { return *part_.metrics; }
  Totals& totals() { return *part_.totals; }
  GatheredFiles& files() { return *part_.files; }
  const std::vector<std::string>& updated_models() const { return updated_models_; }
  const std::vector<std::string>& published_models() const { return published_models_; }

  /// Before the first work of an iteration; once it has begun, nothing.
  void begin(const Iteration& iteration);

  /// The node has had all of the iteration.
  void end(const Iteration& iteration);

  /// After that: the node's state can be saved, and the models that it trains, where the run is saved after this iteration. On
  /// rank 0 the checkpointer knows that; the others are told.
  void save(const Iteration& iteration, bool told_to_save = false);

  /// Of a node that trains, on rank 0 of several, before save(): whether the others are to save their parts of its models. They
  /// may begin as soon as they hear of it.
  bool announces_save(const Iteration& iteration);

  /// After end(), once nothing of the node runs for the iteration any more: what waits for it may start on another executor at
  /// once.
  void announce_end(const Iteration& iteration);

  /// Instead of all that, in an iteration that the node does not hear of: nothing of it changes, and it records nothing.
  void pass_over(const Iteration& iteration);

 private:
  void compare_states(int64_t iteration);
  void report_metrics(int64_t iteration, Contribution of_all);
  void record_schedules(int64_t iteration);
  bool speaks_for_rank() const;
  void take_what_ranks_say(int64_t iteration, Contribution& of_all);
  void release_models(const Iteration& iteration);
  void add_what_samplers_tell(int64_t iteration, Contribution mine);
  void combine_metrics(int64_t iteration, Contribution mine);

  RunState& state_;
  const int index_;
  const PlanNode& plan_;
  const int executor_;
  const Workload::Part part_;
  const bool is_absent_;  // this rank does not have the node
  std::vector<std::string> updated_models_, published_models_;
  std::optional<NodeState> first_state_;  // of one that rewinds
  int64_t begun_ = -1;                    // the iteration that the node is in
};

}  // namespace sluice::engine
