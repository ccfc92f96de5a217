#include "engine/schedule/rollout/group_rounds.h"

#include <algorithm>

#include "engine/plan/capacity.h"

namespace sluice::engine {

GroupRounds::GroupRounds(FilterTally& tally, int64_t quota, const NodeNeeds* filter, World world)
    : tally_(tally), filter_(filter), world_(world) {
  for (int slot = 0; slot < world.slots; ++slot) quota_.push_back(world.share_of_slot(quota, slot));
}

void GroupRounds::begin_iteration() {
  drawn_of_.assign(quota_.size(), 0);
  round_ = -1;
  drawn_ = drawn_here_ = done_ = 0;
  data_ended_ = false;
  tally_.reset();
  begin_round(quota_);
}

void GroupRounds::begin_next_round() {
  const std::vector<int64_t> still_missing = missing(tally_.kept_by_all().value());
  tally_.begin_round();
  begin_round(still_missing);
}

void GroupRounds::begin_round(const std::vector<int64_t>& missing) {
  flushed_ = asked_ = false;
  ++round_;
  ends_.clear();
  round_end_ = drawn_;
  for (size_t slot = 0; slot < missing.size(); ++slot) {
    round_end_ += filter_ == nullptr ? missing[slot] : groups_of_round(missing[slot], filter_->oversample, may_draw(slot));
    ends_.push_back(round_end_);
  }
  slot_ = 0;
  find_slot();
}

// The next one that has a group left to draw.
void GroupRounds::find_slot() {
  while (static_cast<size_t>(slot_) < ends_.size() && ends_[static_cast<size_t>(slot_)] <= drawn_) ++slot_;
}

void GroupRounds::draw() {
  ++drawn_of_[static_cast<size_t>(slot_)];
  if (is_mine()) ++drawn_here_;
  ++drawn_;
  find_slot();
}

void GroupRounds::drop(int slot) {
  ++done_;
  if (filter_ != nullptr) tally_.judge(slot, 1, 0);
}

bool GroupRounds::wants_verdicts() const {
  return filter_ != nullptr && flushed_ && !asked_ && !data_ended_ && tally_.judged() == drawn_here_;
}

std::vector<int64_t> GroupRounds::missing(const std::vector<int64_t>& kept) const {
  std::vector<int64_t> missing;
  for (size_t slot = 0; slot < quota_.size(); ++slot) missing.push_back(quota_[slot] - kept[slot]);
  return missing;
}

bool GroupRounds::wants_round() const {
  if (filter_ == nullptr || !flushed_ || data_ended_) return false;
  const auto kept = tally_.kept_by_all();
  if (!kept) return false;
  const std::vector<int64_t> still_missing = missing(*kept);
  for (size_t slot = 0; slot < still_missing.size(); ++slot) {
    if (still_missing[slot] > 0 && may_draw(slot) > 0) return true;
  }
  return false;
}

bool GroupRounds::undecided() const {
  if (filter_ == nullptr) return false;
  if (!flushed_ || tally_.judged() < drawn_here_) return true;
  return !data_ended_ && (!tally_.kept_by_all() || wants_round());
}

}  // namespace sluice::engine
