#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::comm::testing {

/// Another backend whose every send and receive begins, and is waited for, a random while later. Thread-safe as that one is.
class DelayedBackend final : public c10d::Backend {
 public:
  /// `delays`: counts them, and outlives this.
  DelayedBackend(std::shared_ptr<c10d::Backend> backend, uint64_t seed, int64_t most_us, std::atomic<int64_t>& delays)
      : Backend(backend->getRank(), backend->getSize()),
        backend_(std::move(backend)),
        random_(seed, 7),
        most_us_(most_us),
        delays_(delays) {}

  c10::intrusive_ptr<c10d::Work> send(std::vector<at::Tensor>& tensors, int rank, int tag) override {
    pause();
    return c10::make_intrusive<DelayedWork>(backend_->send(tensors, rank, tag), *this);
  }

  c10::intrusive_ptr<c10d::Work> recv(std::vector<at::Tensor>& tensors, int rank, int tag) override {
    pause();
    return c10::make_intrusive<DelayedWork>(backend_->recv(tensors, rank, tag), *this);
  }

 private:
  class DelayedWork final : public c10d::Work {
   public:
    DelayedWork(c10::intrusive_ptr<c10d::Work> work, DelayedBackend& backend) : work_(std::move(work)), backend_(backend) {}

    bool wait(std::chrono::milliseconds timeout) override {
      backend_.pause();
      return work_->wait(timeout);
    }
    void abort() override { work_->abort(); }

   private:
    const c10::intrusive_ptr<c10d::Work> work_;
    DelayedBackend& backend_;
  };

  void pause() {
    int64_t microseconds = 0;
    {
      const std::lock_guard lock(mutex_);
      microseconds = static_cast<int64_t>(random_.below(static_cast<uint64_t>(most_us_)));
    }
    ++delays_;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  }

  const std::shared_ptr<c10d::Backend> backend_;
  std::mutex mutex_;  // of random_
  RandomStream random_;
  const int64_t most_us_;
  std::atomic<int64_t>& delays_;
};

}  // namespace sluice::comm::testing
