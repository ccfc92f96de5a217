#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/admission_stage.h"
#include "engine/schedule/mutual_help.h"
#include "engine/schedule/owners_seen.h"
#include "engine/schedule/path_head.h"
#include "engine/schedule/rollout_tail.h"
#include "engine/schedule/run_state.h"
#include "engine/schedule/stage_host.h"
#include "engine/schedule/worker_progress.h"

namespace sluice::engine {

/// A rollout on a rank that only samples. It asks the owners, the ranks that train, for prompts, one after the other and with
/// room for a group of the worst size each time; makes the groups; and gives them back. It draws no data, knows no rounds and
/// adds up no numbers: which iteration it is at, its owners tell it (OwnersSeen). So nobody waits for this rank but for the
/// groups that it has been given, and these can be given to another one.
///
/// Where credit is taken on demand, what it has finished must not keep what it makes from growing: its owner may wait for a
/// group of another rank, and that one for this. So the credit of finished groups is given up where nothing else can go on, and
/// nothing new is begun before their owners have fetched them. What is in the making may become three times the budget at most,
/// at worst, so there are never columns of more than four times as many tokens.
///
/// It samples from one iteration at a time, the earliest of those that owners offer. Where ranks of its role may be lost it
/// keeps room for a group of the worst size, if credit is not taken on demand: a group that was given to a lost rank may have
/// to be made here, and owners take no later one over before. It may be of an earlier iteration: then it goes back to that when
/// what it has begun is finished.
///
/// Used by one executor only; waiting() and waits_for() may be asked by anybody. What goes wrong is the run's failure.
class RolloutWorker final : public PathHead {
 public:
  struct Parts {
    int path = 0;  // index into Plan::paths
    std::unique_ptr<StageHost> rollout;
    int64_t begun = 0;         // the first iteration that it samples
    bool may_be_lost = false;  // ranks of this role may
    MutualHelp& help;
    OwnersSeen& owners;
    WorkerProgress& progress;
  };

  /// `finished` is called once, when nothing will be made any more.
  RolloutWorker(RunState& state, Parts parts, std::function<void()> finished);

  int path() const override { return index_; }
  bool ready() override;
  void begin_step() override;
  void end_step() override;

  int64_t iteration() const override { return seen_iteration_.load(); }
  Rollout::PoolBytes pool_bytes() const override { return {seen_pool_held_.load(), seen_pool_used_.load()}; }
  int64_t running_samples() const override { return tail_.samples(); }
  int64_t take_tail_ns() override { return tail_.take_ns(); }
  int64_t take_groups_for_others() override { return made_.exchange(0); }
  Wait waiting() const override;
  std::string waits_for() const override;

 private:
  bool may_ask() const { return !asked_ && next_offer().has_value(); }
  std::optional<OwnersSeen::Offer> next_offer() const;
  bool may_enter(int64_t iteration) const;
  bool has_version(int64_t iteration) const;
  bool may_make_more() const;
  bool has_room() const;
  bool has_room_again() const;
  bool waits_for_credit() const { return rollout_.blocked() && !admission_.may_retry(); }

  void guarded(void (RolloutWorker::*half)());
  WorkPlace place() const;
  void take_in();
  void take_answer();
  void ask();
  void bring_out();
  void give_back(Group group, const Contribution& metrics);
  void enter(int64_t iteration);
  void leave();
  void end_iterations();
  void finish_run();

  RunState& state_;
  const int index_;  // of the path
  PathState& path_;
  const Parts parts_;
  StageHost& host_;
  Rollout& rollout_;
  const std::function<void()> finished_;
  std::vector<const VersionGate*> gates_;  // of the trained models that it samples from
  const bool on_demand_;
  AdmissionStage admission_;

  std::optional<OwnersSeen::Offer> asked_;  // the open question
  Credit asked_with_;
  std::map<int64_t, int> owners_of_;        // of groups in the making, by index
  int64_t at_ = -1;                         // the iteration that the rollout is in; -1: none
  int64_t ended_;                           // iterations of which nothing is left
  std::map<int64_t, Contribution> beside_;  // recorded beside groups, by iteration that is not ended
  bool finished_run_ = false;
  Slice slice_;
  int64_t step_began_ns_ = 0;
  RolloutTail tail_;

  std::atomic<int64_t> seen_iteration_, made_{0};
  std::atomic<int64_t> seen_pool_held_{0}, seen_pool_used_{0};
  std::atomic<bool> seen_idle_{true};
};

}  // namespace sluice::engine
