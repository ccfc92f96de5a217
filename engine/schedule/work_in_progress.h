#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sluice::engine {

/// Counts what is under way in a run: packets that wait for something or are worked on, and the intake until it has finished.
/// Thread-safe.
class WorkInProgress {
 public:
  void enter(int64_t count = 1) { count_.fetch_add(count); }

  /// Who waits may destroy this as soon as nothing is under way: it sees that under the lock, when the last is done here.
  void leave() {
    const std::lock_guard lock(mutex_);
    if (count_.fetch_sub(1) == 1) changed_.notify_all();
  }

  int64_t count() const { return count_.load(); }

  /// Waits as long for nothing being under way; false when something still is.
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return count_.load() == 0; });
  }

 private:
  std::atomic<int64_t> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace sluice::engine
