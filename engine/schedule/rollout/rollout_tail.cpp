#include "engine/schedule/rollout/rollout_tail.h"

#include <algorithm>

namespace sluice::engine {

void RolloutTail::step(int64_t samples, bool all_groups_are_in, int64_t ns) {
  constexpr int64_t kPart = 4;  // of the samples
  most_samples_ = std::max(most_samples_, samples);
  samples_.store(samples, std::memory_order_relaxed);
  if (all_groups_are_in && samples > 0 && kPart * samples < most_samples_) ns_.fetch_add(ns, std::memory_order_relaxed);
}

}  // namespace sluice::engine
