#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/admission_stage.h"
#include "engine/schedule/executor.h"
#include "engine/schedule/group_rounds.h"
#include "engine/schedule/helping.h"
#include "engine/schedule/mutual_help.h"
#include "engine/schedule/packing_stage.h"
#include "engine/schedule/rollout_tail.h"
#include "engine/schedule/run_state.h"
#include "engine/schedule/stage_host.h"
#include "engine/schedule/take_over.h"

namespace sluice::engine {

/// The head of a path, step by step: its source, the admission behind it, the rollout if there is one, and the packing. It decides
/// when an iteration begins (the version gate, the reports, the other paths) and ends. Groups are admitted in order, so a later
/// iteration never takes credit that an earlier one needs. A path that measures begins in the iterations in which it is due, with
/// its source as it was at first, and passes over the others: then only an end travels along it. Of several ranks each packs its
/// own groups; one that has credit left makes groups of others, and others may make some of its own. With roles those that train have
/// all of theirs made, by those that sample, which have none of their own. Used by one executor only; waiting() and waits_for() may
/// be asked by anybody.
class Intake final : public Stepper {
 public:
  struct Parts {
    int path = 0;  // index into Plan::paths
    std::unique_ptr<StageHost> source;
    std::unique_ptr<StageHost> rollout;  // may be null: then the source makes complete groups
    int64_t begun = 0;                   // the first iteration
    MutualHelp* help = nullptr;          // with ranks that make groups for each other; null: there are none
  };

  /// `emit` puts a packet into the flow graph. `finished` is called once, when nothing will be emitted any more.
  Intake(RunState& state, Parts parts, std::function<void(Packet)> emit, std::function<void()> finished);

  int path() const override { return index_; }
  bool ready() override;
  void begin_step() override;
  void end_step() override;

  /// The iteration that groups are drawn for; -1: none yet.
  int64_t iteration() const { return seen_iteration_.load(); }

  /// Of the rollout, after its last step.
  Rollout::PoolBytes pool_bytes() const { return {seen_pool_held_.load(), seen_pool_used_.load()}; }

  /// Of the rollout: how many samples its last step gave a token, and the time in the tails of iterations since the last call.
  int64_t running_samples() const { return tail_.samples(); }
  int64_t take_tail_ns() { return tail_.take_ns(); }

  /// Groups that this rank has made for others since the last call.
  int64_t take_groups_for_others() { return helping_ ? helping_->take_count() : 0; }

  /// What keeps the next group.
  enum class Wait { kNothing, kCredit, kOtherRank, kVerdicts, kVersion, kReports };
  Wait waiting() const;

  /// The same, as a person would say it; empty: nothing.
  std::string waits_for() const;

 private:
  class RolloutSink;

  bool passes_over(int64_t iteration) const;  // it takes no part in it
  bool has_version(int64_t version) const;    // of all that it samples from
  bool may_begin() const;                     // the next iteration may start
  bool may_draw() const;                      // another group of the current round is wanted
  bool may_admit() const;
  bool admits() const { return rollout_ == nullptr || samples_; }
  bool makes_for_others_alone() const { return helping_ && !owns_; }
  bool may_help() const;        // with a group of another rank
  bool has_to_help() const;     // before the iteration ends
  bool may_step() const;        // the rollout has something to do
  bool round_complete() const;  // all groups of the round are finished
  bool iteration_complete() const;
  bool over() const;  // nothing more will come
  bool all_groups_are_in() const { return !rounds_.wants_group() && !admission_.has_waiting(); }
  bool wants_to_end() const;  // early, if no other path is ahead
  bool ends_early() const { return state_.interrupted && !has_to_finish_; }
  StageHost& maker() const { return parts_.rollout ? *parts_.rollout : *parts_.source; }

  void guarded(void (Intake::*half)());
  void turn_to(const StageHost& host);
  WorkPlace place() const;
  void take_in();
  void bring_out();
  void begin_iteration();
  void pass_over_iteration();
  void begin_sampling();
  void begin_round();
  void draw_group();
  bool admit_group();
  void admit_what_fits();
  bool answer_askers();
  void take_prompt();
  void make_known_what_others_made();
  void forget_declined(int64_t group);
  void hand_on(Group group, Credit credit);
  void take_over();
  void ask_for_verdicts();
  void finish_group(Group group);
  void end_iteration();
  void end_host(StageHost& host);
  void hand_on_end();
  void finish_run();

  RunState& state_;
  const int index_;  // of the path
  PathState& path_;
  const Parts parts_;
  Source& source_;
  Rollout* const rollout_;  // null: none
  const std::function<void()> finished_;
  const bool owns_, samples_;              // this rank has slots; and makes the samples of rollouts
  std::vector<const VersionGate*> gates_;  // of the trained models that it samples from
  GroupRounds rounds_;
  AdmissionStage admission_;
  std::optional<TakeOver> take_over_;  // where ranks share the making
  std::optional<Helping> helping_;     // likewise, and there are others
  PackingStage packing_;

  Iteration iteration_;
  bool in_iteration_ = false;
  bool data_ended_ = false;
  bool follows_ = false;        // it measures, or its data have ended: other paths decide how long the run goes on
  bool has_to_finish_ = false;  // the iteration at hand, although the run is interrupted: another path has begun it
  bool finished_run_ = false;
  std::map<int64_t, Credit> fetching_;  // of own groups that come from where they were made, by index
  std::map<int64_t, int> slots_given_;  // of own groups that others make, by index
  std::vector<Group> complete_;         // that the source made whole, until the step's second half
  const StageHost* at_;                 // whose code runs
  Slice slice_;                         // what the step at hand amounts to
  int64_t step_began_ns_ = 0;
  RolloutTail tail_;

  std::atomic<int64_t> seen_iteration_;  // for waits_for()
  std::atomic<int64_t> seen_pool_held_{0}, seen_pool_used_{0};
  std::atomic<bool> seen_in_iteration_{false}, seen_undecided_{false};
  std::atomic<bool> seen_asking_{false};  // for a group to make, with none at hand
};

}  // namespace sluice::engine
