#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

namespace sluice::engine {

/// Which iterations still complete when a run is to end before all that is in flight is finished: those that some model was
/// trained for, so that no model is ahead of another in what is saved. Thread-safe.
class IterationCutoff {
 public:
  /// `begun`: the first iteration of this run.
  explicit IterationCutoff(int64_t begun) : trained_(begun - 1) {}

  /// Asked before a model is trained for an iteration. False: that iteration is dropped.
  bool may_train(int64_t iteration) {
    const std::lock_guard lock(mutex_);
    if (drops(iteration)) return false;
    if (iteration > trained_) trained_ = iteration;
    return true;
  }

  /// From now on everything is dropped but the iterations that were trained for. Returns the last of these.
  int64_t close() {
    const std::lock_guard lock(mutex_);
    if (!closed()) last_ = trained_;
    return last_;
  }

  bool closed() const { return last_.load() != kAll; }
  bool drops(int64_t iteration) const { return iteration > last_.load(); }

 private:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  std::mutex mutex_;
  int64_t trained_;
  std::atomic<int64_t> last_{kAll};
};

}  // namespace sluice::engine
