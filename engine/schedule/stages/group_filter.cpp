#include "engine/schedule/stages/group_filter.h"

#include <algorithm>
#include <numeric>

#include "engine/observe/engine_metrics.h"

namespace sluice::engine {

GroupFilter::GroupFilter(RunState& state, StageHost& host) : state_(state), host_(host), path_(state.path_of(host.plan())) {
  if (host.plan().needs.most_draws <= 1) return;
  const NodeNeeds& source = state.plan.nodes[static_cast<size_t>(path_.plan.source)].needs;
  for (int slot = 0; slot < state.world.slots; ++slot)
    quota_.push_back(state.world.share_of_slot(source.groups_per_iteration, slot));
  kept_of_.resize(quota_.size());
}

int64_t GroupFilter::room_for(const MicroBatch& batch) const {
  if (!has_quota()) return static_cast<int64_t>(batch.groups());
  const auto slot = static_cast<size_t>(batch.state().slot);
  return quota_[slot] - kept_of_[slot];
}

std::vector<uint8_t> GroupFilter::choose(const MicroBatch& batch) {
  const int64_t room = room_for(batch);
  std::vector<uint8_t> keep(batch.groups(), 1);
  int64_t kept = 0;
  for (size_t g = 0; g < keep.size(); ++g) {
    const bool passes = batch.dropped_groups().empty() || batch.dropped_groups()[g] == 0;
    const bool over = passes && kept == room;
    keep[g] = passes && !over;
    kept += keep[g];
    dropped_ += !passes;
    surplus_ += over;
  }
  kept_ += kept;
  record_dropped(batch.state().layout, keep);
  return keep;
}

void GroupFilter::tell(const BatchState& batch, const std::vector<uint8_t>& keep) {
  if (!has_quota()) return;
  const int64_t kept = std::ranges::count(keep, 1);
  kept_of_[static_cast<size_t>(batch.slot)] += kept;
  path_.tally.judge(batch.slot, batch.drawn_groups, kept);
}

void GroupFilter::tell_of_empty(const BatchState& batch) {
  if (has_quota()) path_.tally.judge(batch.slot, batch.drawn_groups, 0);
}

void GroupFilter::record_dropped(const Layout& layout, const std::vector<uint8_t>& keep) {
  const auto record = [&](const char* share, size_t all, Extent extent) {
    size_t kept = 0;
    for (const Range entries : layout.entries_of(keep, extent)) kept += entries.size();
    const std::string name = metrics::of_filter(host_.plan().name, share);
    host_.metrics().mean(name, 0, static_cast<double>(kept));
    host_.metrics().mean(name, 1, static_cast<double>(all - kept));
  };
  record(metrics::kDroppedSamples, layout.samples(), Extent::kSample);
  record(metrics::kDroppedTokens, layout.actions(), Extent::kAction);
}

void GroupFilter::record() {
  const auto sum = [&](const char* what, int64_t groups) {
    host_.metrics().sum(metrics::of_filter(host_.plan().name, what), static_cast<double>(groups));
  };
  sum(metrics::kGroupsKept, kept_);
  sum(metrics::kGroupsDropped, dropped_);
  if (has_quota()) {
    const SlotRange mine = state_.world.mine();
    sum(metrics::kGroupsSurplus, surplus_);
    sum(metrics::kGroupsMissing, std::accumulate(quota_.begin() + mine.first, quota_.begin() + mine.last, -kept_));
    std::ranges::fill(kept_of_, 0);
  }
  kept_ = dropped_ = surplus_ = 0;
}

}  // namespace sluice::engine
