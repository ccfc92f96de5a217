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

  /// As long as it lives something is under way, unless nothing was when it was made.
  class Hold {
   public:
    explicit Hold(WorkInProgress& work) : work_(work), holds_(work.enter_beside_others()) {}
    ~Hold() {
      if (holds_) work_.leave();
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    WorkInProgress& work_;
    const bool holds_;
  };

  int64_t count() const { return count_.load(); }

  /// Waits as long for nothing being under way; false when something still is.
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return count_.load() == 0; });
  }

 private:
  bool enter_beside_others() {
    for (int64_t count = count_.load(); count > 0;)
      if (count_.compare_exchange_weak(count, count + 1)) return true;
    return false;
  }

  std::atomic<int64_t> count_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace sluice::engine
