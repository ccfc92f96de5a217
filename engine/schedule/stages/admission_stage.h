#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/contract/node.h"

namespace sluice::engine {

/// What a path admits.
struct AdmissionRules {
  int64_t most_tokens = 0;   // of a group: what the plan was proven for
  bool on_demand = false;    // groups are admitted with less than they may become
  int64_t first_tokens = 0;  // on demand: with so much at most
  bool in_order = true;      // on demand: groups finish in the order of their index
};

/// The stage after a source that admits its groups against the token budget of their path, in order, and keeps their credit
/// until they are handed on. One group waits at a time. Used by the executor of the source only; waits_for_tokens() may be asked
/// by anybody. What a rollout does against its contract throws UserError.
class AdmissionStage {
 public:
  AdmissionStage(TokenBudget& budget, const AdmissionRules& rules) : budget_(budget), rules_(rules) {}

  void begin_iteration() { last_finished_ = 0; }

  /// A group that was taken from the source, to be admitted next. `rollout`: who says how many tokens that takes; null: the group
  /// is complete.
  void offer(Group group, const Rollout* rollout);

  bool has_waiting() const { return waiting_.has_value(); }

  /// The group that waits can be admitted. What has started goes first: a younger group would only be preempted for it.
  bool fits() const { return waiting_ && refused_tokens_ == 0 && budget_.has_free(waiting_tokens_); }

  /// Admits it. Nothing: the budget does not have the tokens any more.
  std::optional<Group> admit();

  /// On demand: a step of the rollout begins, which may be refused credit.
  void begin_step() { refused_tokens_ = 0; }

  /// What the rollout's last step was refused is free now; also if it was refused nothing.
  bool may_retry() const { return budget_.has_free(refused_tokens_); }

  /// The group that waits is made by another rank.
  Group give_away() { return std::move(*std::exchange(waiting_, std::nullopt)); }

  /// Credit for any group, which another rank may give; nothing: the budget does not have it.
  bool can_reserve() const { return refused_tokens_ == 0 && budget_.has_free(tokens_to_reserve()); }
  /// For two of them.
  bool can_reserve_beside() const { return refused_tokens_ == 0 && budget_.has_free(2 * tokens_to_reserve()); }
  std::optional<Credit> reserve();

  /// Admits such a group, with that credit.
  void admit(const Group& group, const Rollout& rollout, Credit reserved);

  /// Of Rollout::Sink.
  void return_credit(int64_t group, int64_t tokens);
  bool take_credit(int64_t group, int64_t tokens);

  /// A group is complete: what it does not hold tokens for goes back.
  void settle(const Group& group);

  /// The credit of a group that is complete, which goes on with it.
  Credit hand_over(int64_t group);

  /// Tells those who ask from elsewhere what the state is after a step.
  void show() { shown_tokens_ = waiting_ ? waiting_tokens_ : refused_tokens_; }

  /// Tokens of credit that the next group, or the rollout, waits for; 0: none.
  int64_t waits_for_tokens() const { return shown_tokens_.load(); }
  std::string waits_for() const;

  struct Groups {
    int64_t first = -1, last = -1;
  };
  /// Those that hold credit; -1: none.
  Groups admitted() const;

 private:
  int64_t worst_of(const Group& group, const Rollout* rollout) const;
  int64_t first_of(const Group& group, const Rollout* rollout) const;
  int64_t tokens_to_reserve() const { return rules_.on_demand ? rules_.first_tokens : rules_.most_tokens; }

  TokenBudget& budget_;
  const AdmissionRules rules_;
  std::optional<Group> waiting_;
  int64_t waiting_tokens_ = 0;        // that it is admitted with
  int64_t refused_tokens_ = 0;        // of credit that the rollout's last step could not have; 0: it had all
  std::map<int64_t, Credit> credit_;  // of groups that were admitted and not handed on, by index
  int64_t last_finished_ = 0;         // index; on demand groups finish in order
  std::atomic<int64_t> shown_tokens_{0};
};

}  // namespace sluice::engine
