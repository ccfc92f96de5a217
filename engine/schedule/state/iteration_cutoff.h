#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>

namespace sluice::engine {

/// Which iterations still complete when a run is to end before all that is in flight is finished: those that some model was
/// trained for, so that no model is ahead of another in what is saved. Of several ranks each says how far it has come, and all
/// finish what the slowest has come to (engine/schedule/state/agreed_end.h). Thread-safe.
class IterationCutoff {
 public:
  /// `begun`: the first iteration of this run.
  explicit IterationCutoff(int64_t begun) : entered_(begun - 1) {}

  /// Asked before a node that trains adds to what all ranks add up in an iteration, after which a model may change; and before
  /// this rank tells the others that all its nodes have ended one. False: that iteration is dropped.
  bool enters(int64_t iteration) {
    const std::lock_guard lock(mutex_);
    if (drops(iteration)) return false;
    if (iteration > entered_) entered_ = iteration;
    return true;
  }

  /// From now on everything is dropped but the iterations that were entered. Returns the last of these.
  int64_t close() {
    const std::lock_guard lock(mutex_);
    if (!closed()) last_ = entered_;
    return last_;
  }

  /// Another rank has closed at an earlier one: no rank has changed a model after that.
  void lower(int64_t last) {
    const std::lock_guard lock(mutex_);
    last_ = std::min(last_.load(), last);
  }

  bool closed() const { return last_.load() != kAll; }
  bool drops(int64_t iteration) const { return iteration > last_.load(); }

 private:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  std::mutex mutex_;
  int64_t entered_;
  std::atomic<int64_t> last_{kAll};
};

}  // namespace sluice::engine
