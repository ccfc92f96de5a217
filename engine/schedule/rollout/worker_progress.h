#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/ranks/roll_call.h"
#include "engine/schedule/help/owners_seen.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// What a rank that only samples does after iterations that are done with. Where all owners have all groups of an iteration, the
/// memory of the oldest version of the weights is free for the next, which this says at once. And what the rank has measured and
/// recorded is told to rank 0.
///
/// Owned by the driver. Threads: all calls from any. Failure: what a model throws goes through.
class WorkerProgress {
 public:
  struct Parts {
    RollCall& roll_call;
    const OwnersSeen& owners;
    std::vector<int> paths;      // with a rollout
    int64_t newest_version = 0;  // of the weights that this rank has, or does not get
    std::function<Contribution(int64_t iteration)> measure;
    std::function<std::string()> tell;
  };

  /// `state` outlives it, and what `parts` refers to.
  WorkerProgress(RunState& state, Parts parts);

  /// The owners have got on. Not for the thread of a node: it may call models.
  void let_versions_come();

  /// On this rank nothing is left of an iteration on a path: each once, in order. `recorded`: by the rollout, beside its groups.
  void ended(int path, int64_t iteration, Contribution recorded);

 private:
  struct Received {
    std::string model;
    int trained_on = 0;           // path
    std::vector<int> sampled_on;  // paths
    ModelVersions versions;
    int64_t granted = 0;  // the newest version that may come
  };

  void note_received(const PlanModel& model);
  bool may_come(const Received& received, int64_t version) const;
  void receive(Received& received);
  void arrive(const std::string& model, int64_t version, const ReceivedVersion& received);

  RunState& state_;
  const Parts parts_;
  std::mutex mutex_;  // guards what follows
  std::vector<Received> received_;
  struct Ended {
    size_t paths = 0;
    std::map<int, Contribution> of_rollouts;  // by node
  };
  std::map<int64_t, Ended> ended_;  // iterations that some paths have ended
};

}  // namespace sluice::engine
