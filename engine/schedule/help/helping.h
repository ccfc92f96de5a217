#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/columns/token_budget.h"
#include "engine/contract/world/world.h"
#include "engine/schedule/help/group_asker.h"
#include "engine/schedule/help/round.h"

namespace sluice::engine {

/// Making groups for other ranks beside its own, on one path of a rank: whom to ask next, with what credit, and whose groups are
/// being made. In each round a rank asks others, one after the other, each until that one has none left.
///
/// Belongs to the intake of the path. Used by the executor of the source only; take_count() may be called by anybody.
class Helping {
 public:
  /// `asker` outlives it.
  Helping(GroupAsker& asker, int path, World world);

  /// Another round of groups begins, on all ranks.
  void begin_round(Round round);
  Round round() const { return round_; }

  /// Somebody is left to ask, and no question is open.
  bool may_ask() const { return !asked_ && has_left(); }
  bool has_left() const { return next_ < owners_.size(); }

  /// `credit`: for a group of the worst size.
  void ask(Credit credit);

  /// Something of another rank's is not done: a question, or a group in the making.
  bool is_busy() const { return asked_ || !makes_for_.empty(); }

  /// A prompt that has come, with the credit for its group.
  struct Prompt {
    Group group;
    Credit credit;
  };
  std::optional<Prompt> take_prompt();

  /// That one is made. Its credit is free again when its owner has it.
  void give_back(Group group, Credit credit);

  /// Groups that were made for others since the last call.
  int64_t take_count() { return count_.exchange(0); }

 private:
  GroupAsker& asker_;
  const int path_;
  std::vector<int> owners_;  // in the order in which they are asked
  Round round_{.iteration = -1, .number = 0};
  size_t next_ = 0;  // of owners_
  bool asked_ = false;
  Round asked_in_;                    // where the question was put
  Credit credit_;                     // of the question
  std::map<int64_t, int> makes_for_;  // the owner, by group
  std::atomic<int64_t> count_{0};
};

}  // namespace sluice::engine
