#pragma once

#include <cstdint>

#include "engine/contract/contract.h"
#include "engine/plan/capacity.h"
#include "engine/schedule/filter_tally.h"

namespace sluice::engine {

/// Which groups of a path's source an iteration draws. They are drawn in rounds: one, unless a filter has what it drops replaced;
/// then the next round draws what is still missing once the verdicts on the last one are in, so what is drawn never depends on
/// timing. Used by the executor of the source only.
class GroupRounds {
 public:
  /// `quota`: groups that an iteration is to have. `filter`: the refilling one; null: none.
  GroupRounds(FilterTally& tally, int64_t quota, const NodeNeeds* filter) : tally_(tally), quota_(quota), filter_(filter) {}

  void begin_iteration() {
    drawn_ = done_ = round_end_ = 0;
    data_ended_ = false;
    tally_.reset();
    begin_round(quota_);
  }

  /// Draws what the filter's verdicts have left missing.
  void begin_next_round() { begin_round(quota_ - tally_.count().kept); }

  /// Another group of the round is to be drawn: it has the index drawn().
  bool wants_group() const { return !data_ended_ && drawn_ < round_end_; }
  int64_t drawn() const { return drawn_; }
  void draw() { ++drawn_; }
  void end_data() { data_ended_ = true; }
  bool data_ended() const { return data_ended_; }

  /// A group is complete, or nobody makes samples for it.
  void finish() { ++done_; }

  /// It is dropped before anybody has seen it. It was drawn, so a refilling filter counts it as one that it dropped.
  void drop() {
    ++done_;
    if (filter_ != nullptr) tally_.judged(1, 0);
  }

  /// All groups of the round are complete.
  bool complete() const { return (data_ended_ || drawn_ == round_end_) && done_ == drawn_; }

  /// And nothing of it is left to be handed on.
  bool flushed() const { return flushed_; }
  void flush() { flushed_ = true; }

  /// The filter's verdicts ask for another round.
  bool wants_round() const {
    if (filter_ == nullptr || !flushed_ || data_ended_) return false;
    const FilterTally::Count count = tally_.count();
    return count.judged == drawn_ && count.kept < quota_ && drawn_ < filter_->most_draws * quota_;
  }

  /// The filter has groups to judge, or may want another round.
  bool undecided() const { return filter_ != nullptr && (!flushed_ || tally_.count().judged < drawn_ || wants_round()); }

 private:
  void begin_round(int64_t missing) {
    flushed_ = false;
    const int64_t more =
        filter_ == nullptr ? missing : groups_of_round(missing, filter_->oversample, filter_->most_draws * quota_ - drawn_);
    round_end_ = drawn_ + more;
  }

  FilterTally& tally_;
  const int64_t quota_;
  const NodeNeeds* const filter_;
  int64_t round_end_ = 0;  // groups to draw in this iteration before the next verdicts
  int64_t drawn_ = 0;      // groups of this iteration
  int64_t done_ = 0;       // of these
  bool flushed_ = false;
  bool data_ended_ = false;
};

}  // namespace sluice::engine
