#include "nodes/rollout/running_weights.h"

#include <algorithm>
#include <utility>

#include "models/devices/streams.h"

namespace sluice::nodes {

void add_version(std::vector<VersionRun>& runs, size_t tokens, int64_t version) {
  if (!runs.empty() && runs.back().begin == tokens)
    runs.back().version = version;
  else
    runs.push_back({.begin = tokens, .version = version});
}

int64_t version_of(const std::vector<VersionRun>& runs, size_t token) {
  const auto behind = std::ranges::upper_bound(runs, token, {}, &VersionRun::begin);
  return std::prev(behind)->version;
}

void RunningWeights::begin_iteration(int64_t version) {
  version_ = version;
  if (update_ == engine::WeightUpdate::kExact) {
    weights_ = &sampled_->at(version);
    return;
  }
  begin_step();
  end_step();
}

bool RunningWeights::begin_step() {
  if (update_ == engine::WeightUpdate::kExact) return false;
  lease_ = sampled_->newest();
  weights_ = lease_.weights.get();
  return std::exchange(version_, lease_.version) != lease_.version;
}

// A step that drew nothing may still be going on.
void RunningWeights::end_step() {
  if (lease_.weights) models::finish_work_on(sampled_->device());
  lease_ = {};
}

}  // namespace sluice::nodes
