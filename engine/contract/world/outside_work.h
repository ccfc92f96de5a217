#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <string>

namespace sluice::engine {

/// What nodes of a run do outside of it: they wait for servers and processes, each wait with a limit of its own. The run learns
/// that they do not hang, and they learn what nobody needs any more. It also knows what runs on threads of the nodes' own and may
/// never come back (OutsideCall). One a run. Thread-safe.
class OutsideWork {
 public:
  /// Grows while somebody waits.
  int64_t looks() const { return looks_.load(std::memory_order_relaxed); }

  /// Nothing after that iteration is needed any more; -1: nothing at all.
  void drop_behind(int64_t last) {
    int64_t before = last_.load();
    while (last < before && !last_.compare_exchange_weak(before, last)) {
    }
  }

  /// "the reply of its environment to turn 0 of sample 1, for 4 s so far": the oldest call of that node that is under way. Empty:
  /// none is.
  std::string waits_for(const std::string& node) const;

  /// Waits for: no call being under way. Ends when: none is, or `longest` has passed; then it is false.
  bool wait_for_calls(std::chrono::milliseconds longest) const;

 private:
  friend class OutsideWait;
  friend class OutsideCall;

  struct Call {
    std::string node, what;
    std::chrono::steady_clock::time_point since;
  };

  int64_t begin(Call call);
  void end(int64_t call);

  std::atomic<int64_t> looks_{0};
  std::atomic<int64_t> last_{std::numeric_limits<int64_t>::max()};
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable ended_;
  std::map<int64_t, Call> calls_;  // under way, by number: the oldest first
  int64_t next_call_ = 0;
};

/// As long as it lives, a thread of a node's own is in other people's code, which may never come back: a run that ends waits for
/// it a while, and a run that has failed names it. Made and destroyed on that thread.
class OutsideCall {
 public:
  /// `work` outlives this; null: nobody is to know. `what` is waited for, by `node`.
  OutsideCall(OutsideWork* work, std::string node, std::string what);
  ~OutsideCall();
  OutsideCall(const OutsideCall&) = delete;
  OutsideCall& operator=(const OutsideCall&) = delete;

 private:
  OutsideWork* const work_;
  int64_t number_ = 0;
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
