#include "engine/executor.h"

#include <pthread.h>

#include <utility>

namespace sluice::engine {

Executor::Executor(std::string name, std::function<void()> on_start) : name_(std::move(name)) {
  thread_ = std::thread([this, start = std::move(on_start)] {
    pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
    if (start) start();
    loop();
  });
}

Executor::~Executor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Executor::set_stepper(Stepper* stepper) {
  const std::lock_guard lock(mutex_);
  stepper_ = stepper;
}

void Executor::submit(int rank, int64_t order, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push({rank, order, std::move(work)});
  }
  wake_.notify_one();
}

void Executor::notify() {
  {
    const std::lock_guard lock(mutex_);
    notified_ = true;
  }
  wake_.notify_one();
}

std::function<void()> Executor::next_work() {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return {};
  std::function<void()> work = std::move(const_cast<Work&>(queue_.top()).run);  // top() is const, but it goes at once
  queue_.pop();
  return work;
}

void Executor::loop() {
  for (;;) {
    Stepper* stepper = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (ending_) return;
      notified_ = false;
      stepper = stepper_;
    }
    if (const auto work = next_work()) {
      work();
    } else if (stepper != nullptr && stepper->ready()) {
      stepper->step();
    } else {
      // Waits for: queued work, or news for the stepper. Ends when: submit(), notify() or the destructor.
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return ending_ || notified_ || !queue_.empty(); });
    }
  }
}

}  // namespace sluice::engine
