#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace sluice::engine {

/// Work that goes on in cooperative steps as long as it is ready, such as decoding. Used by its executor's thread only.
class Stepper {
 public:
  virtual ~Stepper() = default;
  virtual bool ready() = 0;
  virtual void step() = 0;  // does not throw
};

/// A place where nodes run: one thread with a queue. Of the work that is queued, the most downstream goes first, because that drains
/// tokens soonest; the stepper steps only when nothing is queued. Everything but the constructor and the destructor is thread-safe.
class Executor {
 public:
  /// `on_start` runs first on the new thread.
  Executor(std::string name, std::function<void()> on_start);

  /// Ends the thread after the work at hand; what is queued is dropped.
  ~Executor();

  /// At most one; it must outlive the executor. Steps from the next notify() on.
  void set_stepper(Stepper* stepper);

  /// `rank`: distance from the source; `order`: lower goes first among equal ranks. `work` does not throw.
  void submit(int rank, int64_t order, std::function<void()> work);

  /// The stepper may have become ready.
  void notify();

 private:
  struct Work {
    int rank;
    int64_t order;
    std::function<void()> run;

    bool operator<(const Work& other) const { return rank != other.rank ? rank < other.rank : order > other.order; }
  };

  void loop();
  std::function<void()> next_work();  // empty: nothing queued

  const std::string name_;
  std::mutex mutex_;
  Stepper* stepper_ = nullptr;
  std::condition_variable wake_;
  std::priority_queue<Work> queue_;
  bool notified_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::engine
