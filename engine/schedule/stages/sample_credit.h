#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "engine/contract/node.h"
#include "engine/contract/world/world.h"

namespace sluice::engine {

/// In which groups are handed on where credit is taken on demand.
enum class GroupOrder { kOldestFirst, kAny };

/// A rank that only samples makes groups for others, which take them in order by themselves.
inline GroupOrder order_of_groups(const World& world) { return world.owns_slots() ? GroupOrder::kOldestFirst : GroupOrder::kAny; }

/// Which samples of a rollout hold credit where it is taken on demand, and who gives way when the budget is exhausted.
///
/// Samples are ordered by age: by group, then by sample. One that wants to grow and is refused makes the youngest that holds
/// credit give all of it up, until it is granted or was the youngest itself. So those that hold credit are always the oldest, and
/// the oldest group can have all of the budget but what is in flight after the rollout. Samples that ended give theirs up too
/// while their group waits: it is handed on when it is the oldest and holds all its tokens.
///
/// Where whoever gets the groups takes them in order by itself, as a rank that trains does of ranks that sample for it, they are
/// handed on in any order: their credit is given up there if the oldest needs it (engine/schedule/rollout/rollout_worker.h).
///
/// A preempted sample keeps its text and nothing else. It restarts, the oldest first, in a step in which nobody else was refused,
/// once all of its tokens can be taken again. One thread.
class SampleCredit {
 public:
  struct Key {
    int64_t group = 0;
    int64_t sample = 0;

    auto operator<=>(const Key&) const = default;
  };

  /// What settle() decided of samples that have not ended. No sample is in both.
  struct Changes {
    std::vector<Key> preempted;
    std::vector<Key> restarted;
  };

  /// A sample takes `room` tokens more than it needs at once, so that it asks seldom.
  explicit SampleCredit(int64_t room, GroupOrder order = GroupOrder::kOldestFirst) : room_(room), order_(order) {}

  /// Tokens that a sample is admitted with.
  int64_t least(int64_t prompt, int64_t most) const { return std::min(most, prompt + room_); }

  /// A sample that was admitted with least(). It needs at most `most` tokens.
  void start(Key key, int64_t prompt, int64_t most);

  /// From its next step on the sample has up to `tokens` tokens.
  void set_need(Key key, int64_t tokens);

  /// It ended with `tokens` tokens, prompt among them; 0: it does not travel with its group.
  void end(Key key, int64_t tokens, Rollout::Sink& sink);

  /// Takes what is needed for the next step, the oldest first, and preempts the youngest where that is too much.
  Changes settle(Rollout::Sink& sink);

  /// The sample holds what it needs.
  bool holds(Key key) const;

  /// All samples of the group have ended and hold their tokens, and no older group is left if that goes first.
  bool may_finish(int64_t group) const;

  /// Forgets a group that is handed on, or abandoned.
  void forget(int64_t group);

  /// After settle(): there are samples, and none that could take a step.
  bool blocked() const;

 private:
  struct Holding {
    int64_t held = 0;
    int64_t need = 0;
    int64_t most = 0;
    bool ended = false;
    bool preempted = false;

    bool fed() const { return held >= need; }
  };
  using Holdings = std::map<Key, Holding>;

  bool feed(Holdings::value_type& sample, Rollout::Sink& sink, Changes& changes);
  Holdings::value_type* youngest_holder();
  void preempt(Holdings::value_type& sample, Rollout::Sink& sink, Changes& changes);

  const int64_t room_;
  const GroupOrder order_;
  Holdings holdings_;
  bool refused_ = false;  // somebody, in this settle()
};

}  // namespace sluice::engine
