#include "engine/schedule/stages/thread_executor.h"

#include <pthread.h>

#include <utility>

namespace sluice::engine {

ThreadExecutor::ThreadExecutor(int index, const std::string& name, Activity& activity, std::function<void()> on_start)
    : index_(index), activity_(activity) {
  thread_ = std::thread([this, name, start = std::move(on_start)] {
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
    own_thread_ = std::this_thread::get_id();
    if (start) start();
    loop();
  });
}

ThreadExecutor::~ThreadExecutor() {
  tell([this] { ending_ = true; });
  thread_.join();
}

// Changes what the mutex guards. A thread that is awake looks at it before its next piece of work and needs no waking. It is
// woken under the mutex: a thread that is not of this run, such as one that brings mail, may have given it the last work that
// there was, and what it is woken by would be gone.
template <class Change>
void ThreadExecutor::tell(Change change) {
  const std::lock_guard lock(mutex_);
  change();
  news_.store(true, std::memory_order_relaxed);
  if (std::exchange(asleep_, false)) wake_.notify_one();
}

void ThreadExecutor::add_stepper(Stepper* stepper) {
  tell([&] { new_steppers_.push_back(stepper); });
}

void ThreadExecutor::submit(Work work) {
  if (on_own_thread()) {
    queue_.push(std::move(work));
    own_queued_.store(queue_.size(), std::memory_order_relaxed);
  } else {
    tell([&] { inbox_.push_back(std::move(work)); });
  }
}

// The own thread asks the stepper after every piece of work and every step anyway.
void ThreadExecutor::notify() noexcept {
  if (!on_own_thread()) tell([] {});
}

size_t ThreadExecutor::queued() const noexcept {
  const std::lock_guard lock(mutex_);
  return inbox_.size() + own_queued_.load(std::memory_order_relaxed);
}

void ThreadExecutor::loop() {
  while (collect()) {
    if (work_once()) {
      at_once_ = true;
      continue;
    }
    at_once_ = false;
    // Waits for: work from another thread, or news for the stepper. Ends when: submit(), notify(), add_stepper() or the
    // destructor.
    std::unique_lock lock(mutex_);
    while (!news_.load(std::memory_order_relaxed)) {
      asleep_ = true;
      wake_.wait(lock);
    }
    asleep_ = false;
  }
}

// Takes over what other threads brought. False: it is to end.
bool ThreadExecutor::collect() {
  if (!news_.load(std::memory_order_relaxed)) return true;
  const std::lock_guard lock(mutex_);
  news_.store(false, std::memory_order_relaxed);
  for (Work& work : inbox_) queue_.push(std::move(work));
  inbox_.clear();
  for (Stepper* stepper : new_steppers_) steppers_.add(stepper);
  new_steppers_.clear();
  own_queued_.store(queue_.size(), std::memory_order_relaxed);
  return !ending_;
}

// False: there was nothing to do. News that arrive while the stepper is asked are seen before the thread waits.
bool ThreadExecutor::work_once() {
  if (std::optional<Work> work = queue_.pop()) {
    own_queued_.store(queue_.size(), std::memory_order_relaxed);
    if (at_once_) activity_.go_on(index_);
    activity_.begin(index_, work->node);
    work->task->run(std::move(work->packet));
    return true;
  }
  Stepper* const stepper = steppers_.next();
  if (stepper == nullptr) return false;
  if (at_once_) activity_.go_on(index_);
  stepper->begin_step();
  stepper->end_step();
  return true;
}

}  // namespace sluice::engine
