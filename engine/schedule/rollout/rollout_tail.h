#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::engine {

/// How long a rollout works on the tail of its iterations: all groups are in, and fewer than a quarter of as many samples run as
/// ran at a time. A step then reads all weights for a few tokens. A policy_lag hides it after the next iteration's samples.
///
/// The rollout's executor tells each step; the other functions may be called from any thread.
class RolloutTail {
 public:
  void begin_iteration() { most_samples_ = 0; }

  /// A step that took `ns` gave `samples` samples a token each.
  void step(int64_t samples, bool all_groups_are_in, int64_t ns);

  /// Samples of the last step.
  int64_t samples() const { return samples_.load(std::memory_order_relaxed); }

  /// Time in tails since the last call.
  int64_t take_ns() { return ns_.exchange(0, std::memory_order_relaxed); }

 private:
  int64_t most_samples_ = 0;  // of a step of this iteration
  std::atomic<int64_t> samples_{0};
  std::atomic<int64_t> ns_{0};
};

}  // namespace sluice::engine
