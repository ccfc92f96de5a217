#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>

namespace sluice::engine {

/// A count that only grows, such as "the model was trained for so many iterations", and what waits for it. Thread-safe.
class Milestone {
 public:
  int64_t reached() const { return reached_.load(); }

  /// Calls `action` once `count` is reached: at once, or on the thread that reaches it. What waits for one count runs in order.
  /// An action must not call the milestone.
  void when_reached(int64_t count, std::function<void()> action);

  /// Going back is without effect.
  void reach(int64_t count);

  /// Lets everything through that waits or will wait, because the count will never be reached: the run has failed.
  void abandon() { reach(std::numeric_limits<int64_t>::max()); }

  /// Lets everything through that waits or will wait for `count` or more, because nothing is done with it any more.
  void let_through(int64_t count);

 private:
  std::atomic<int64_t> reached_{0};
  std::mutex mutex_;
  int64_t let_through_ = std::numeric_limits<int64_t>::max();
  std::multimap<int64_t, std::function<void()>> waiting_;  // by count, in order of arrival
};

}  // namespace sluice::engine
