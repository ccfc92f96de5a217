#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

namespace sluice::engine {

/// What the refilling filter of a pipeline has decided in the iteration that is being sampled: there is one at a time, because the next
/// begins only when the verdicts on all groups of this one are in. Thread-safe.
class FilterTally {
 public:
  struct Count {
    int64_t judged = 0;  // groups
    int64_t kept = 0;    // of these
  };

  /// `on_verdict` is called on the filter's thread.
  explicit FilterTally(std::function<void()> on_verdict) : on_verdict_(std::move(on_verdict)) {}

  void reset() {
    const std::lock_guard lock(mutex_);
    count_ = {};
  }

  void judged(int64_t groups, int64_t kept) {
    {
      const std::lock_guard lock(mutex_);
      count_.judged += groups;
      count_.kept += kept;
    }
    on_verdict_();
  }

  Count count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  const std::function<void()> on_verdict_;
  mutable std::mutex mutex_;
  Count count_;
};

}  // namespace sluice::engine
