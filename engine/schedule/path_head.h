#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "engine/contract/node.h"
#include "engine/schedule/executor.h"
#include "engine/schedule/run_state.h"
#include "engine/schedule/stage_host.h"

namespace sluice::engine {

/// What is at the head of a path on a rank, as the driver sees it: an intake, or on a rank that only samples a rollout worker.
/// Used by one executor only; what follows may be asked by anybody.
class PathHead : public Stepper {
 public:
  /// The iteration that it is at; -1: none yet.
  virtual int64_t iteration() const = 0;

  /// Of the rollout, after its last step.
  virtual Rollout::PoolBytes pool_bytes() const = 0;

  /// Of the rollout: how many samples its last step gave a token, and the time in the tails of iterations since the last call.
  virtual int64_t running_samples() const = 0;
  virtual int64_t take_tail_ns() = 0;

  /// Groups that this rank has made for others since the last call.
  virtual int64_t take_groups_for_others() = 0;

  /// What keeps the next group.
  enum class Wait { kNothing, kCredit, kOtherRank, kVerdicts, kVersion, kReports };
  virtual Wait waiting() const = 0;

  /// The same, as a person would say it; empty: nothing.
  virtual std::string waits_for() const = 0;
};

/// Behind a step of one: what it amounted to is told to the observers, and counts as progress, unless it was nothing. On the
/// executor of the node that made it.
inline void tell_of_step(RunState& state, const StageHost& maker, Slice slice) {
  const bool worked = slice.tokens > 0 || slice.prompt_tokens > 0 || slice.groups > 0;
  if (!worked) return state.activity.end_unseen(maker.executor());
  state.activity.end(maker.executor(), std::move(slice));
  state.steps.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace sluice::engine
