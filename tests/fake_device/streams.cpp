#include "tests/fake_device/streams.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace sluice::fake {
namespace {

constexpr uint64_t kMostHeld = 64;  // pieces

}  // namespace

Stream::Stream() { std::thread(&Stream::run, this).detach(); }

int64_t Stream::queue(Work work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  if (has_to_work()) to_do_.notify_one();
  return ++queued_;
}

void Stream::wait_for(int64_t piece) {
  std::unique_lock lock(mutex_);
  if (done_ >= piece) return;
  const auto mine = wanted_.insert(piece);
  to_do_.notify_one();
  done_some_.wait(lock, [&] { return done_ >= piece; });
  wanted_.erase(mine);
}

void Stream::wait() {
  wait_for(last_queued());
  const std::lock_guard lock(mutex_);
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

bool Stream::has_done(int64_t piece) {
  const std::lock_guard lock(mutex_);
  return done_ >= piece;
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  return done_ == queued_;
}

int64_t Stream::last_queued() {
  const std::lock_guard lock(mutex_);
  return queued_;
}

void Stream::set_schedule(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  random_ = RandomStream(seed, 0);
  held_ = static_cast<int64_t>(random_.below(kMostHeld + 1));
  to_do_.notify_one();
}

bool Stream::has_to_work() const {
  const bool is_wanted = !wanted_.empty() && done_ < *wanted_.rbegin();
  return is_wanted || static_cast<int64_t>(queue_.size()) > held_;
}

void Stream::run() {
  at::set_num_threads(1);
  const at::NoGradGuard no_gradient;
  std::unique_lock lock(mutex_);
  for (;;) {
    to_do_.wait(lock, [this] { return has_to_work(); });
    Work work = std::move(queue_.front());
    queue_.pop_front();
    const bool failed = failure_ != nullptr;
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!failed) work();
    } catch (...) {
      failure = std::current_exception();
    }
    work = {};  // what it refers to goes before it counts as done
    lock.lock();
    if (failure) failure_ = failure;
    ++done_;
    if (random_.below(16) == 0) held_ = static_cast<int64_t>(random_.below(kMostHeld + 1));
    if (!wanted_.empty() && done_ >= *wanted_.begin()) done_some_.notify_all();
  }
}

void make_wait(Stream& waiting, const Event& event) {
  if (event.stream == nullptr || event.stream == &waiting) return;
  waiting.queue([event] { event.stream->wait_for(event.piece); });
}

}  // namespace sluice::fake
