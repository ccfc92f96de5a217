#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/schedule/help/group_owner.h"

namespace sluice::engine {

/// The stage between the making of groups and their packing, on a rank that shares the making with others. Takes the rank's own
/// groups over from whoever has made them, in the order of their index, as soon as the budget of what is trained has room. So a
/// group that was made waits for this rank alone, and what is made waits for nothing that is trained.
///
/// Belongs to the intake of the path. Used by the executor of the source only; waits_for() may be asked by anybody.
class TakeOver {
 public:
  /// `trained`: the budget of what is trained, which outlives this.
  explicit TakeOver(TokenBudget& trained) : trained_(trained) {}

  /// The next group of this rank, which somebody makes. In order.
  void expect(int64_t group) { expected_.push_back(group); }

  /// It is complete, here or at another rank.
  void made_here(Group group, Credit making);
  void made_elsewhere(GroupOwner::Made made);

  /// Nobody makes it.
  void drop(int64_t group);

  /// The rank that was to make it is lost, and it was not taken over, or did not come.
  void expect_again(int64_t group);

  /// Which rank makes a group; without that this one does.
  void given_to(int64_t group, int rank) { makers_[group] = rank; }

  /// The next one in order is complete, and there is room for it.
  bool fits() const;

  /// Takes it over: a group that was made here goes on with the credit of what is trained, one that was made elsewhere is to be
  /// fetched.
  struct Taken {
    std::variant<Group, GroupOwner::Made> group;
    Credit credit;
  };
  std::optional<Taken> take();

  /// The oldest that was not taken over; -1: none.
  int64_t next() const { return expected_.empty() ? -1 : expected_.front(); }

  /// Tells those who ask from elsewhere what the state is after a step.
  void show();

  /// What the next group waits for: tokens of the budget of what is trained; 0: not for them. And the other rank that makes it;
  /// -1: none.
  int64_t waits_for_tokens() const { return shown_tokens_.load(); }
  int waits_for_rank() const { return shown_rank_.load(); }
  std::string waits_for() const;

 private:
  struct Here {
    Group group;
    Credit making;
  };
  using Complete = std::variant<Here, GroupOwner::Made>;

  static int64_t tokens_of(const Complete& complete);
  std::optional<int64_t> next_tokens() const;  // of the next group in order; nothing: it is not complete

  TokenBudget& trained_;
  std::deque<int64_t> expected_;          // indices of groups that were not taken over
  std::map<int64_t, int> makers_;         // of these, where another rank makes them
  std::map<int64_t, Complete> complete_;  // of these
  std::atomic<int64_t> shown_tokens_{0}, shown_group_{-1};
  std::atomic<int> shown_rank_{-1};
};

}  // namespace sluice::engine
