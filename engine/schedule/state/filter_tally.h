#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::engine {

/// What the refilling filter of a path has decided in the iteration that is being sampled: there is one at a time, because the
/// next begins only when the verdicts on all groups of this one are in. A rank judges the groups of its own slots; what all ranks
/// have kept, they tell each other after each round. Thread-safe.
class FilterTally {
 public:
  using BySlot = std::vector<int64_t>;  // groups, of each slot of the run

  /// `on_verdict` is called on the thread of who told.
  FilterTally(int64_t slots, std::function<void()> on_verdict)
      : slots_(static_cast<size_t>(slots)), on_verdict_(std::move(on_verdict)), kept_(slots_) {}

  /// Another iteration.
  void reset() {
    const std::lock_guard lock(mutex_);
    judged_ = 0;
    kept_.assign(slots_, 0);
    kept_by_all_.reset();
  }

  /// The filter has judged groups of a slot of this rank.
  void judge(int slot, int64_t groups, int64_t kept) {
    {
      const std::lock_guard lock(mutex_);
      judged_ += groups;
      kept_[static_cast<size_t>(slot)] += kept;
    }
    on_verdict_();
  }

  int64_t judged() const {
    const std::lock_guard lock(mutex_);
    return judged_;
  }

  BySlot kept() const {
    const std::lock_guard lock(mutex_);
    return kept_;
  }

  /// What all ranks have kept up to the end of the round; unknown again from the beginning of the next.
  void learn(BySlot kept_by_all) {
    {
      const std::lock_guard lock(mutex_);
      kept_by_all_ = std::move(kept_by_all);
    }
    on_verdict_();
  }
  void begin_round() {
    const std::lock_guard lock(mutex_);
    kept_by_all_.reset();
  }
  std::optional<BySlot> kept_by_all() const {
    const std::lock_guard lock(mutex_);
    return kept_by_all_;
  }

 private:
  const size_t slots_;
  const std::function<void()> on_verdict_;
  mutable std::mutex mutex_;  // guards what follows
  int64_t judged_ = 0;
  BySlot kept_;
  std::optional<BySlot> kept_by_all_;
};

}  // namespace sluice::engine
