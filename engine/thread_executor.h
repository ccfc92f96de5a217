#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "engine/activity.h"
#include "engine/executor.h"

namespace sluice::engine {

/// An executor that is one thread. Everything but the constructor and the destructor is thread-safe.
class ThreadExecutor final : public Executor {
 public:
  /// `index` into Plan::executors; `on_start` runs first on the new thread. `activity` outlives the executor, as a stepper must.
  ThreadExecutor(int index, const std::string& name, Activity& activity, std::function<void()> on_start);

  /// Waits for the work at hand; what is queued is dropped.
  ~ThreadExecutor() override;

  void set_stepper(Stepper* stepper) override;
  void submit(Work work) override;
  void notify() override;
  size_t queued() const override;

 private:
  void loop();
  bool work_once();

  const int index_;
  Activity& activity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  WorkQueue queue_;
  Stepper* stepper_ = nullptr;
  bool notified_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace sluice::engine
