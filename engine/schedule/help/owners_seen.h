#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/schedule/help/round.h"

namespace sluice::engine {

/// What the ranks that train have said to one that only samples: how far each of them is, on each path, and which of them may
/// have groups to be made. Thread-safe.
class OwnersSeen {
 public:
  /// `owners`: those that this rank asks, in the order of asking. `begun`: iterations that were complete before the run.
  OwnersSeen(size_t paths, std::vector<int> owners, int64_t begun);

  /// Owners that this rank does not ask are of no interest.
  void take(int path, int owner, const OwnerNews& news);

  /// Iterations of which all owners have all groups: nobody asks for one of them again.
  int64_t floor(int path) const;

  /// No owner has groups of an earlier iteration that it has not given to anybody.
  bool have_given_all_before(int path, int64_t iteration) const;

  /// No owner has anything to be made any more.
  bool is_over(int path) const;

  /// Whom to ask next: one with groups of the earliest iteration that somebody offers. Nobody, as long as an owner may still give
  /// groups of an earlier one away: it may wait for these with what others need to get on.
  struct Offer {
    int owner = 0;
    Round round;
    bool only_again = false;  // of those that were given to a rank that is lost
  };
  std::optional<Offer> next(int path) const;

  /// Whom to ask for one that was given to a rank that is lost, of the earliest iteration that is not complete.
  std::optional<Offer> next_again(int path) const;

  /// Somebody has some, of whatever iteration.
  bool some_offer(int path) const;

  /// That one has none there.
  void refused(int path, const Offer& offer);

 private:
  struct Owner {
    OwnerNews news;
    bool none_left = false;  // at that round, as it has said

    bool has_given_all_before(int64_t iteration) const {
      return news.round.iteration >= iteration || (none_left && news.round.iteration == iteration - 1);
    }
  };

  std::vector<Owner>& of(int path) { return seen_.at(static_cast<size_t>(path)); }
  const std::vector<Owner>& of(int path) const { return seen_.at(static_cast<size_t>(path)); }
  std::optional<size_t> index_of(int owner) const;

  const std::vector<int> owners_;
  mutable std::mutex mutex_;
  std::vector<std::vector<Owner>> seen_;  // by path, in the order of owners_
};

}  // namespace sluice::engine
