#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sluice::bench {

/// Waits until something has happened so many times. Thread-safe; outlives who counts.
class Countdown {
 public:
  explicit Countdown(int64_t count) : left_(count) {}

  void count() {
    const std::lock_guard lock(mutex_);
    if (--left_ == 0) changed_.notify_all();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t left_;
};

}  // namespace sluice::bench
