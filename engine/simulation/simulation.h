#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/problem.h"
#include "engine/observe/costs.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// What a run would have done. Seconds are virtual.
struct SimulationResult {
  struct Executor {
    std::string name;
    int threads = 1;
    double busy_seconds = 0;
    double gap_seconds = 0;         // between two pieces of work, with more to do
    double no_credit_seconds = 0;   // idle: the next group did not fit into the token budget
    double no_weights_seconds = 0;  // idle: the next iteration, or work on it, needs weights that were not there yet
    double no_input_seconds = 0;    // idle for any other reason: nothing had come, or nothing was left
  };
  struct Node {
    std::string name;
    std::string executor;
    int64_t micro_batches = 0;
    int64_t tokens = 0;
    double busy_seconds = 0;
  };

  /// Parts of the time, over some ranks.
  struct Share {
    double least = 0, mean = 0, most = 0;
  };

  /// What links have carried, in all, and how long something was on its way.
  struct Carried {
    double bytes = 0;
    double seconds = 0;
  };

  /// Ranks of a role: parts of the time in which some executor of a rank works, and what it waits for where none does. Of one
  /// that computes passes of frozen models only the first is known.
  struct Role {
    std::string name;
    int ranks = 1;
    Share busy;
    Share waits_for_weights;  // that others train
    Share waits_for_groups;   // that others make or give, or for credit
    Share waits_for_others;   // to come to the same point, as a sum of gradients
    Share waits_for_network;  // for what is on its way
  };

  /// The same of all ranks: where none of its executors works, and others have not come to where it waits, or all have.
  struct Ranks {
    int count = 1;
    int forward = 0;  // beside them, of roles that compute passes of frozen models
    Share busy;
    Share waits_for_others;
    Share waits_for_network;
    double network_seconds = 0;  // mean
    double idle = 0;             // part of the time in which a rank of any role does nothing, on average
    Carried columns;             // of groups that one rank makes for another
    Carried weights;             // from ranks that train to those that sample
    std::vector<Role> roles;     // in the order of the plan
  };

  double seconds = 0;  // to the end of the last work
  int64_t iterations = 0;
  std::vector<double> iteration_seconds;
  int64_t tokens = 0;                             // of all samples
  int64_t sampled_tokens = 0;                     // of these: actions
  double rollout_seconds = 0, train_seconds = 0;  // with roles: the mean of the ranks that do it
  double overlap_seconds = 0;                     // both at once on a rank; with roles: on any ranks
  double tail_seconds = 0;                        // of the rollout: on the last few samples of an iteration (RolloutTail)
  std::vector<Executor> executors;                // in the order of the plan
  std::vector<Node> nodes;                        // likewise, without a source that works inside its rollout
  int64_t budget = 0;
  int64_t tokens_in_flight_peak = 0;
  std::vector<double> tokens_in_flight;  // means over 60 equal parts of the time
  int64_t column_bytes_peak = 0;         // without the text of string columns
  std::vector<std::string> notes;        // on the costs
  std::optional<Ranks> ranks;    // of several; then the rest is the mean of them, executors and nodes that of the ranks that have
                                 // them, and tokens in flight are those of rank 0
  std::optional<Problem> stall;  // nothing could get on, though work was left
};

/// Runs `plan` with its own scheduler (driver, graph, intake, budget, gates) on a virtual clock: nodes do no work but take the
/// time that `costs` say. All ranks of the plan are run on one clock, and what they tell each other takes the time that
/// [cluster.network] says. `observers` see the work of rank 0, and `on_iterations` hears how many it has ended, whenever these
/// are more. The same plan and costs give the same result, always. Throws what a run throws for a plan that breaks its own bounds
/// (an InternalError).
SimulationResult simulate(const Plan& plan, const Costs& costs, std::vector<WorkObserver*> observers = {},
                          const std::function<void(int64_t)>& on_iterations = {});

}  // namespace sluice::engine
