#pragma once

#include <cstdint>
#include <vector>

#include "engine/contract/node_needs.h"
#include "engine/contract/world/world.h"
#include "engine/schedule/state/filter_tally.h"

namespace sluice::engine {

/// Which groups of a path's source an iteration draws, and which slot of the run each is dealt out to. They are drawn in
/// rounds: one, unless a filter has what it drops replaced; then the next round draws what each slot is still missing once the
/// verdicts on the last one are in, so what is drawn never depends on timing. A round has the groups of one slot after those of
/// another, so that micro-batches of one slot come after each other. All ranks draw all groups; each packs those of its own
/// slots, whoever has made their samples. Used by the executor of the source only.
class GroupRounds {
 public:
  /// `quota`: groups that an iteration is to have. `filter`: the refilling one; null: none.
  GroupRounds(FilterTally& tally, int64_t quota, const NodeNeeds* filter, World world);

  void begin_iteration();

  /// Draws what the filter's verdicts have left missing.
  void begin_next_round();

  /// Another group of the round is to be drawn: it has the index drawn(), and is dealt out to slot().
  bool wants_group() const { return !data_ended_ && drawn_ < round_end_; }
  int64_t drawn() const { return drawn_; }
  int slot() const { return slot_; }
  bool is_mine() const { return world_.has_slot(slot_); }

  /// It is drawn.
  void draw();
  void end_data() { data_ended_ = true; }
  bool data_ended() const { return data_ended_; }

  /// A group is complete, or another rank's.
  void finish() { ++done_; }

  /// A group of that slot is dropped before anybody has seen it. It was drawn, so a refilling filter counts it as one that it
  /// dropped.
  void drop(int slot);

  /// All groups of the round are complete.
  bool complete() const { return (data_ended_ || drawn_ == round_end_) && done_ == drawn_; }

  /// Likewise, and no other round can follow.
  bool last_complete() const { return filter_ == nullptr && complete(); }

  /// And nothing of it is left to be handed on.
  bool flushed() const { return flushed_; }
  void flush() { flushed_ = true; }

  /// The filter has judged what this rank has of the round, and the ranks have not been asked yet: what all have kept is to be
  /// told to the tally, once, by their answer.
  bool wants_verdicts() const;
  void ask_for_verdicts() { asked_ = true; }
  int64_t round() const { return round_; }

  /// The verdicts ask for another round.
  bool wants_round() const;

  /// The filter has groups to judge, or may want another round.
  bool undecided() const;

 private:
  void begin_round(const std::vector<int64_t>& missing);
  void find_slot();
  std::vector<int64_t> missing(const std::vector<int64_t>& kept) const;
  int64_t may_draw(size_t slot) const { return filter_->most_draws * quota_[slot] - drawn_of_[slot]; }

  FilterTally& tally_;
  const NodeNeeds* const filter_;
  const World world_;
  std::vector<int64_t> quota_;     // by slot
  std::vector<int64_t> drawn_of_;  // likewise: groups of this iteration
  std::vector<int64_t> ends_;      // likewise: the round's groups of the slot come before this index
  int slot_ = 0;                   // of the next group of the round
  int64_t round_ = 0;
  int64_t round_end_ = 0;   // groups to draw in this iteration before the next verdicts
  int64_t drawn_ = 0;       // groups of this iteration
  int64_t drawn_here_ = 0;  // of these, in this rank's slots
  int64_t done_ = 0;        // of all
  bool flushed_ = false;
  bool asked_ = false;
  bool data_ended_ = false;
};

}  // namespace sluice::engine
