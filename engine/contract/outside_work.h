#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>

namespace sluice::engine {

/// What nodes of a run do outside of it: they wait for servers and processes, each wait with a limit of its own. The run learns that
/// they do not hang, and they learn what nobody needs any more. One a run. Thread-safe.
class OutsideWork {
 public:
  /// Grows while somebody waits.
  int64_t looks() const { return looks_.load(std::memory_order_relaxed); }

  /// Nothing behind that iteration is needed any more; -1: nothing at all.
  void drop_behind(int64_t last) {
    int64_t before = last_.load();
    while (last < before && !last_.compare_exchange_weak(before, last)) {
    }
  }

 private:
  friend class OutsideWait;

  std::atomic<int64_t> looks_{0};
  std::atomic<int64_t> last_{std::numeric_limits<int64_t>::max()};
};

/// An iteration is dropped for which a node waits. It passes that on: the run takes it for no failure.
class WorkDropped final : public std::exception {
 public:
  const char* what() const noexcept override { return "what a node waited for is not needed any more"; }
};

/// What a node waits for outside, for an iteration. A value; by itself nobody watches.
class OutsideWait {
 public:
  static constexpr std::chrono::milliseconds kLook{500};  // the longest to wait between two calls of go_on()

  OutsideWait() = default;

  /// `work`: of the node's resources, which outlives this; null: nobody watches.
  OutsideWait(OutsideWork* work, int64_t iteration) : work_(work), iteration_(iteration) {}

  /// To be called again and again by a node that waits with a limit of its own. Throws WorkDropped.
  void go_on() const {
    if (work_ == nullptr) return;
    if (iteration_ > work_->last_.load()) throw WorkDropped();
    work_->looks_.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  OutsideWork* work_ = nullptr;
  int64_t iteration_ = 0;
};

}  // namespace sluice::engine
