#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/ranks/roll_call.h"
#include "engine/schedule/help/group_asker.h"
#include "engine/schedule/help/owners_seen.h"
#include "engine/schedule/rollout/rollout_worker.h"
#include "engine/schedule/rollout/worker_progress.h"
#include "engine/schedule/state/run_state.h"
#include "engine/schedule/state/workload.h"

namespace sluice::engine {

/// What a rank that only samples has in place of intakes and a graph: a rollout worker on each path that has a rollout, and what
/// it knows of the ranks that train. Owned by the driver. Threads: the words of other ranks come on the thread of the mail; the
/// workers belong to their executors.
class SamplingRank {
 public:
  struct Parts {
    RollCall& roll_call;
    int64_t begun = 0;  // iterations that were complete before the run
    // Of the weights, where this rank has come later; `begun` is then the first iteration that it samples.
    std::optional<int64_t> first_version = {};
    std::function<Contribution(int64_t iteration)> measure;
    std::function<std::string()> tell;  // may be empty
    std::function<void()> changed;      // workers may have become ready
  };

  /// `state` outlives it.
  SamplingRank(RunState& state, Parts parts);

  /// Of a path that has a rollout. `finished`: nothing will be made on it any more.
  std::unique_ptr<PathHead> worker(int path, Workload::Part rollout, GroupAsker& asker, std::function<void()> finished);

  /// What owners say, of GroupAsker::Events.
  void hear(int path, int owner, const OwnerNews& news);
  void be_refused(int path, const OwnersSeen::Offer& offer) { owners_.refused(path, offer); }
  void end_behind(int64_t last);

 private:
  RunState& state_;
  const std::function<void()> changed_;
  const int64_t begun_;
  OwnersSeen owners_;
  WorkerProgress progress_;
};

}  // namespace sluice::engine
