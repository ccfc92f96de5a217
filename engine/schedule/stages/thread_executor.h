#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/observe/activity.h"
#include "engine/schedule/stages/executor.h"

namespace sluice::engine {

/// An executor that is one thread. Everything but the constructor and the destructor is thread-safe.
class ThreadExecutor final : public Executor {
 public:
  /// `index` into Plan::executors; `on_start` runs first on the new thread. `activity` outlives the executor, as a stepper must.
  ThreadExecutor(int index, const std::string& name, Activity& activity, std::function<void()> on_start);

  /// Waits for the work at hand; what is queued is dropped.
  ~ThreadExecutor() override;

  void add_stepper(Stepper* stepper) override;
  void submit(Work work) override;
  void notify() noexcept override;
  size_t queued() const noexcept override;

 private:
  template <class Change>
  void tell(Change change);

  void loop();
  bool collect();
  bool work_once();
  bool on_own_thread() const { return own_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  const int index_;
  Activity& activity_;
  std::atomic<std::thread::id> own_thread_{};

  // Of the own thread alone, so that what a node hands to the next one on the same executor takes no lock.
  WorkQueue queue_;
  Steppers steppers_;
  bool at_once_ = false;               // the thread did not wait since its last work
  std::atomic<size_t> own_queued_{0};  // size of queue_, for whoever asks

  std::atomic<bool> news_{false};  // something of what follows waits to be collected
  mutable std::mutex mutex_;       // guards what follows
  std::condition_variable wake_;
  std::vector<Work> inbox_;             // from other threads
  std::vector<Stepper*> new_steppers_;  // likewise
  bool asleep_ = false;                 // nobody has woken it yet
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::engine
