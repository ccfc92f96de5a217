#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/rollout/rollout_sink.h"
#include "engine/schedule/rollout/rollout_tail.h"
#include "engine/schedule/stages/admission_stage.h"
#include "engine/schedule/stages/executor.h"
#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// What is at the head of a path on a rank, step by step: an intake, or on a rank that only samples a rollout worker. Here is
/// what the two have in common: the admission of groups, how a step begins and ends, what is told of it, what becomes of what it
/// throws, and the end of the run.
///
/// Ownership: the driver owns it; the state of the run and the hosts outlive it. Threads: used by the executor of its maker only;
/// what is public and says nothing else may be asked by anybody. Failure: what a half of a step throws is the run's failure, with
/// the place that the head gives.
class PathHead : public Stepper {
 public:
  int path() const final { return index_; }
  void begin_step() final;
  void end_step() final;

  /// The iteration that it is at; -1: none yet.
  int64_t iteration() const { return seen_iteration_.load(); }

  /// Of the rollout, after its last step.
  Rollout::PoolBytes pool_bytes() const { return {seen_pool_held_.load(), seen_pool_used_.load()}; }

  /// Of the rollout: how many samples its last step gave a token, and the time in the tails of iterations since the last call.
  int64_t running_samples() const { return tail_.samples(); }
  int64_t take_tail_ns() { return tail_.take_ns(); }

  /// Groups that this rank has made for others since the last call.
  virtual int64_t take_groups_for_others() = 0;

  /// What keeps the next group.
  enum class Wait { kNothing, kCredit, kOtherRank, kVerdicts, kVersion, kReports };
  virtual Wait waiting() const = 0;

  /// The same, as a person would say it; empty: nothing.
  virtual std::string waits_for() const = 0;

 protected:
  /// `path`: index into Plan::paths. `maker`: the rollout, or where there is none the source. `rules`: of its admission. `begun`:
  /// the first iteration. `finished` is called once, when nothing more comes out.
  PathHead(RunState& state, int path, StageHost& maker, const AdmissionRules& rules, int64_t begun,
           std::function<void()> finished);

  /// The two halves of a step.
  virtual void take_in() = 0;
  virtual void bring_out() = 0;

  /// What the step at hand is of.
  virtual int64_t iteration_of_step() const = 0;

  /// No other group comes to the rollout in its iteration, as far as is known.
  virtual bool all_groups_are_in() const = 0;

  /// Makes known what others may ask.
  virtual void show() = 0;

  /// Whose code runs, and for which groups: named where it fails.
  virtual WorkPlace place() const = 0;

  /// Others are told that nothing more comes; once, before `finished`.
  virtual void leave_run() = 0;

  /// Something is done with one group alone, which is the one to name where it fails.
  template <class Action>
  void for_group(int64_t index, const Action& action) {
    named_group_ = index;
    action();
    named_group_ = -1;
  }

  /// An iteration begins for the admission and the maker.
  void begin_maker(const Iteration& iteration);

  /// Before it ends: the most bytes that the rollout's pool of KV blocks has held.
  void record_pool();

  /// A step of the rollout; what it has finished. `metrics`: see RolloutSink.
  std::vector<RolloutSink::Finished> step_rollout(MetricsRecorder* metrics = nullptr);

  /// Of a group that is finished: its columns are right, and it keeps the credit of the tokens that it has.
  Credit settle(Group& group);

  /// Where the maker is, with the groups that it has.
  WorkPlace place_of_maker(int64_t iteration) const;

  std::string waits_for_version(int64_t iteration) const;

  /// Of all that it samples from.
  bool has_version(int64_t version) const;
  bool follows_weights() const { return !gates_.empty(); }

  void finish_run();
  bool has_finished() const { return finished_run_; }

  RunState& state_;
  const int index_;  // of the path
  PathState& path_;
  StageHost& maker_;
  Rollout* const rollout_;  // null: the source makes complete groups
  Slice slice_;             // what the step at hand amounts to
  AdmissionStage admission_;
  RolloutTail tail_;
  std::atomic<int64_t> seen_iteration_;

 private:
  void guarded(void (PathHead::*half)());
  void tell_of_step();

  const std::function<void()> finished_;
  std::vector<const VersionGate*> gates_;  // of the trained models that it samples from
  bool finished_run_ = false;
  int64_t named_group_ = -1;  // see for_group()
  int64_t step_began_ns_ = 0;
  std::atomic<int64_t> seen_pool_held_{0}, seen_pool_used_{0};
};

}  // namespace sluice::engine
