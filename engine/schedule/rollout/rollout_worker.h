#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/schedule/help/group_asker.h"
#include "engine/schedule/help/owners_seen.h"
#include "engine/schedule/rollout/path_head.h"
#include "engine/schedule/rollout/worker_progress.h"
#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"

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
    GroupAsker& asker;
    OwnersSeen& owners;
    WorkerProgress& progress;
  };

  /// `finished` is called once, when nothing will be made any more.
  RolloutWorker(RunState& state, Parts parts, std::function<void()> finished);

  bool ready() override;
  int64_t take_groups_for_others() override { return made_.exchange(0); }
  Wait waiting() const override;
  std::string waits_for() const override;

 private:
  bool may_ask() const { return !asked_ && next_offer().has_value(); }
  std::optional<OwnersSeen::Offer> next_offer() const;
  bool may_enter(int64_t iteration) const;
  bool has_version_for(int64_t iteration) const { return has_version(path_.plan.version_for(iteration)); }
  bool may_make_more() const;
  bool has_room() const;
  bool has_room_again() const;
  bool waits_for_credit() const { return rollout_->blocked() && !admission_.may_retry(); }

  void take_in() override;
  void bring_out() override;
  int64_t iteration_of_step() const override { return std::max<int64_t>(0, at_); }
  bool all_groups_are_in() const override { return !parts_.owners.some_offer(index_); }
  void show() override;
  WorkPlace place() const override { return place_of_maker(at_); }
  void leave_run() override {}
  void take_answer();
  void ask();
  void give_back(Group group, const Contribution& metrics);
  void enter(int64_t iteration);
  void leave();
  void end_iterations();

  const Parts parts_;
  const bool on_demand_;

  std::optional<OwnersSeen::Offer> asked_;  // the open question
  Credit asked_with_;
  std::map<int64_t, int> owners_of_;        // of groups in the making, by index
  int64_t at_ = -1;                         // the iteration that the rollout is in; -1: none
  int64_t ended_;                           // iterations of which nothing is left
  std::map<int64_t, Contribution> beside_;  // recorded beside groups, by iteration that is not ended

  std::atomic<int64_t> made_{0};
  std::atomic<bool> seen_idle_{true};
};

}  // namespace sluice::engine
