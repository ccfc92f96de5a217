#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/contract/world/world.h"
#include "engine/schedule/help/group_owner.h"
#include "engine/schedule/help/take_over.h"

namespace sluice::engine {

/// The groups of this rank that other ranks make, on one path, from the giving of their prompts until they are here. Where a rank
/// is lost, the prompts that it was given are to be given again: the same prompt gives the same samples, whoever makes them.
///
/// Belongs to the intake of the path. Used by the executor of the source only.
class GivenAway {
 public:
  /// All outlive it.
  GivenAway(GroupOwner& owner, int path, TakeOver& take_over) : owner_(owner), path_(path), take_over_(take_over) {}

  void give(const GroupOwner::Question& question, Group prompt);

  /// It is taken over: what it takes of the budget is held from now on.
  void fetch(int64_t iteration, GroupOwner::Made made, Credit credit);

  /// One that has come.
  struct Fetched {
    Group group;
    Credit credit;
    Contribution metrics;  // that its rollout has recorded with it
  };
  std::optional<Fetched> take_fetched();

  /// One that nobody makes samples for.
  struct Declined {
    int64_t group = 0;
    int slot = 0;
    Contribution metrics;
  };
  std::optional<Declined> take_declined();

  /// Learns what others have made, and which of them are lost. True: some prompts are to be given again.
  bool learn();

  /// The oldest of these; nothing: there is none.
  bool has_again() const { return !again_.empty(); }

  /// That one is the next to be taken over: nothing that is made has to wait for anything else, where somebody makes it.
  bool is_next() const { return has_again() && again_.begin()->first == take_over_.next(); }
  std::optional<Group> take_again();

 private:
  struct Given {
    Group prompt;
    int rank;  // that makes it
  };
  struct OnItsWay {
    Credit credit;
    Contribution metrics;
  };

  void lose(int rank);

  GroupOwner& owner_;
  const int path_;
  TakeOver& take_over_;
  std::map<int64_t, Given> given_;        // that are not here, by index
  std::map<int64_t, OnItsWay> fetching_;  // of these
  std::map<int64_t, Group> again_;        // prompts whose maker was lost
  std::deque<Fetched> fetched_;           // that came before their maker was lost
};

}  // namespace sluice::engine
