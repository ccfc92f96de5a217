#include "engine/thread_executor.h"

#include <pthread.h>

#include <utility>

namespace sluice::engine {

ThreadExecutor::ThreadExecutor(int index, const std::string& name, Activity& activity, std::function<void()> on_start)
    : index_(index), activity_(activity) {
  thread_ = std::thread([this, name, start = std::move(on_start)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    if (start) start();
    loop();
  });
}

ThreadExecutor::~ThreadExecutor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ThreadExecutor::set_stepper(Stepper* stepper) {
  const std::lock_guard lock(mutex_);
  stepper_ = stepper;
}

void ThreadExecutor::submit(Work work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push(std::move(work));
  }
  wake_.notify_one();
}

void ThreadExecutor::notify() {
  {
    const std::lock_guard lock(mutex_);
    notified_ = true;
  }
  wake_.notify_one();
}

size_t ThreadExecutor::queued() const {
  const std::lock_guard lock(mutex_);
  return queue_.size();
}

void ThreadExecutor::loop() {
  for (;;) {
    if (work_once()) continue;
    // Waits for: queued work, or news for the stepper. Ends when: submit(), notify() or the destructor.
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return ending_ || notified_ || !queue_.empty(); });
    if (ending_) return;
  }
}

// False: there was nothing to do. News that arrive while the stepper is asked are seen by the next wait.
bool ThreadExecutor::work_once() {
  std::optional<Work> work;
  Stepper* stepper = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    notified_ = false;
    work = queue_.pop();
    stepper = stepper_;
  }
  if (work) {
    activity_.begin(index_, work->node);
    work->task->run(std::move(work->packet));
    return true;
  }
  if (stepper == nullptr || !stepper->ready()) return false;
  stepper->begin_step();
  stepper->end_step();
  return true;
}

}  // namespace sluice::engine
