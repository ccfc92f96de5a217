#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/help/given_away.h"
#include "engine/schedule/help/helping.h"
#include "engine/schedule/help/mutual_help.h"
#include "engine/schedule/help/take_over.h"
#include "engine/schedule/rollout/group_rounds.h"
#include "engine/schedule/rollout/path_head.h"
#include "engine/schedule/stages/executor.h"
#include "engine/schedule/stages/packing_stage.h"
#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// The head of a path, step by step: its source, the admission after it, the rollout if there is one, and the packing. It
/// decides when an iteration begins (the version gate, the reports, the other paths) and ends. Groups are admitted in order, so a
/// later iteration never takes credit that an earlier one needs. A path that measures begins in the iterations in which it is
/// due, with its source as it was at first, and passes over the others: then only an end travels along it. Of several ranks each
/// packs its own groups; one that has credit left makes groups of others, and others may make some of its own. With roles all are
/// made by ranks that only sample (engine/schedule/rollout/rollout_worker.h), which are told how far this one is; where one of
/// them is lost, what it was given is given to another. Used by one executor only; waiting() and waits_for() may be asked by
/// anybody.
class Intake final : public PathHead {
 public:
  struct Parts {
    int path = 0;  // index into Plan::paths
    std::unique_ptr<StageHost> source;
    std::unique_ptr<StageHost> rollout;  // may be null: then the source makes complete groups
    int64_t begun = 0;                   // the first iteration
    MutualHelp* help = nullptr;          // where ranks make groups for each other, on this path or on another
    std::vector<int> samplers = {};      // those that only sample, and are told how far this one is; none without roles
  };

  /// `emit` puts a packet into the flow graph. `finished` is called once, when nothing will be emitted any more.
  Intake(RunState& state, Parts parts, std::function<void(Packet)> emit, std::function<void()> finished);

  bool ready() override;
  int64_t take_groups_for_others() override { return helping_ ? helping_->take_count() : 0; }
  Wait waiting() const override;
  std::string waits_for() const override;

 private:
  bool passes_over(int64_t iteration) const;  // it takes no part in it
  bool may_begin() const;                     // the next iteration may start
  bool may_draw() const;                      // another group of the current round is wanted
  bool may_admit() const;
  bool admits() const { return rollout_ == nullptr || samples_; }
  bool may_help() const;                                                                // with a group of another rank
  bool has_to_help() const { return helping_ && (helping_->is_busy() || may_help()); }  // before the iteration ends
  bool may_step() const;                                                                // the rollout has something to do
  bool round_complete() const;                                                          // all groups of the round are finished
  bool iteration_complete() const;
  bool over() const;  // nothing more will come
  // Groups are left to be made, and nobody makes them: of a measurement, whose iteration is trained already and cannot be
  // dropped.
  bool lacks_samplers() const { return state_.no_sampler_comes && in_iteration_ && !admits() && !round_complete() && !over(); }
  bool all_groups_are_in() const override {
    return !rounds_.wants_group() && !admission_.has_waiting() && !(given_ && given_->has_again());
  }
  bool wants_to_end() const;                                                              // early, if no other path is ahead
  bool ends_early() const { return state_.interrupted && !has_to_finish_ && !follows_; }  // who follows ends with the others

  void take_in() override;
  void bring_out() override;
  int64_t iteration_of_step() const override { return iteration_.index; }
  void show() override;
  WorkPlace place() const override;
  void leave_run() override;
  void turn_to(const StageHost& host);
  void begin_iteration();
  void pass_over_iteration();
  void begin_sampling();
  void begin_round();
  void draw_group();
  bool admit_group();
  void admit_what_fits();
  bool answer_questions();
  void take_prompt();
  void make_known_what_others_made();
  void forget_declined(const GivenAway::Declined& declined);
  std::optional<Group> next_to_give(bool only_again);
  void tell_samplers(bool has_groups);
  void tell_of_next_again();
  void hand_on(Group group, Credit credit);
  void take_over();
  void ask_for_verdicts();
  void finish_group(Group group);
  void end_iteration();
  void end_host(StageHost& host);
  void hand_on_end();

  const Parts parts_;
  Source& source_;
  const bool samples_;  // this rank makes the samples of rollouts
  GroupRounds rounds_;
  std::optional<TakeOver> take_over_;  // where ranks share the making
  std::optional<Helping> helping_;     // likewise, and there are others
  std::optional<GivenAway> given_;     // likewise
  int64_t told_again_ = -1;            // the group that those who sample were last told of, as the next that is needed
  PackingStage packing_;

  Iteration iteration_;
  bool in_iteration_ = false;
  bool data_ended_ = false;
  bool follows_ = false;         // it measures, or its data have ended: other paths decide how long the run goes on
  bool has_to_finish_ = false;   // the iteration at hand, although the run is interrupted: another path has begun it
  std::vector<Group> complete_;  // that the source made whole, until the step's second half
  const StageHost* at_;          // whose code runs

  std::atomic<bool> seen_in_iteration_{false}, seen_undecided_{false};
};

}  // namespace sluice::engine
