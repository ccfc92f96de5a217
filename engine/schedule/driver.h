#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/observe/status.h"
#include "engine/observe/stop_rule.h"
#include "engine/ranks/rank_links.h"
#include "engine/schedule/rollout/intake.h"
#include "engine/schedule/stages/flow_graph.h"
#include "engine/schedule/stages/replaceable_parts.h"
#include "engine/schedule/state/run_state.h"
#include "engine/schedule/state/workload.h"

namespace sluice::engine {

/// Wires the nodes of a plan with executors and lets groups flow. Knows nothing of threads, time and files: a run drives it with
/// threads and the steady clock, a simulation with virtual ones, so both schedule alike.
class Driver {
 public:
  struct Parts {
    Workload workload;
    const Clock& clock;
    Reductions& reductions;
    std::optional<RankLinks> links = {};   // by which ranks make groups for others; nothing: each makes its own
    Checkpointer* checkpointer = nullptr;  // null: nothing is saved, or by another rank
    OwnParts* own_parts = nullptr;         // what this rank saves for that one; null: nothing
    int64_t begun = 0;                     // iterations that are complete: models and nodes are as they were after them
    // Of a rank that only samples and has come into a run that goes on: the version of the weights that is the first it gets;
    // `begun` is then the first iteration that it may sample.
    std::optional<int64_t> first_version = {};
    std::optional<StopRule> stop_rule = {};  // it has seen the iterations that are complete
    std::vector<WorkObserver*> observers;
    std::function<void(const IterationReport&)> on_iteration;  // on some executor, or where other ranks are heard
    std::function<MetricRow()> measure = {};  // what this rank measures at the end of an iteration, beside what the driver does
    // What another rank than 0 tells rank 0 there, and what rank 0 does with it: before on_iteration, on any thread, one after
    // the other of an iteration. Empty: nothing is told.
    std::function<std::string()> tell = {};
    std::function<void(const std::string& told)> hear = {};
    ReplaceableParts replaced;
  };

  /// Everything in `parts` that is a reference or a pointer, and the plan, outlives the driver.
  Driver(const Plan& plan, Parts parts);
  ~Driver();

  /// Once. `executors` by index of Plan::executors, in a state to take work; they must end before the driver does.
  void start(const std::vector<Executor*>& executors);

  /// After the executors have gone; nothing is handed to them any more.
  void forget_executors();

  /// After a failure, of which the driver's user learns from state(): what waits for another node is handed to its executor,
  /// which drops it.
  void let_everything_end();

  /// No new groups are admitted; what is in flight is finished.
  void interrupt();
  bool is_interrupted() const;

  /// That rank, which only samples, is lost, and may be: see SamplersThere. `why`: one sentence. Or another process has taken
  /// its place, and is to be let in. From any thread.
  void lose(int rank, const std::string& why);
  void take_back(int rank, int64_t incarnation);

  /// What nodes do on threads of their own has ended (OutsideWork::wait_for_calls), or `longest` has passed; then it is false.
  bool wait_for_calls(std::chrono::milliseconds longest) const;

  /// Of the first node that has a call under way: "'generate' waits for the reply of its environment ...". Empty: none has.
  std::string call_under_way() const;

  /// Who waits to be let in is told that the run is over. Before the mail is closed.
  void end_waiting();

  /// After interrupt(): what is in flight is dropped, but for iterations that some model was trained for; of several ranks on
  /// all, the same iterations, as soon as they have agreed.
  void drop_in_flight();

  /// Why [pipeline] stop_when has ended the run; empty: it has not.
  std::string stopped_because() const;

  /// Grows whenever a group, a sample or a micro-batch gets on, or a node waits for something outside with a limit.
  int64_t work_done() const;

  Activity& activity();
  WorkInProgress& in_progress();
  RunState& state();

  /// Why an executor that has nothing to do has nothing to do, or the rank as a whole.
  enum class Idle { kNoInput, kNoCredit, kNoWeights, kNoGroups };  // kNoGroups: other ranks have to make them, or to give them
  Idle idle_reason(int executor) const;
  Idle idle_reason() const;

  /// The most so far, for a memory report. Takes no lock of the run.
  struct Holdings {
    int64_t column_bytes = 0;
    std::map<std::string, Rollout::PoolBytes> pools;  // by the place of the models that are sampled from: "cpu", or a device
  };
  Holdings holdings() const;

  /// All but what a run knows itself (pipeline, state, pid, memory).
  RunStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
