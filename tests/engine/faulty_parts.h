#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "engine/contract/columns/token_budget.h"
#include "engine/schedule/stages/executor.h"

namespace sluice::engine {

/// What goes wrong with a part of a run, and with which of its calls.
struct PartFault {
  enum class Kind {
    kThrows,
    kHangs,  // and stays so
    kLies,   // an executor loses the work that it took, a budget grants what it does not have
  } kind = Kind::kThrows;
  int64_t at = 0;
};

/// The executor that it is put around, until the call to submit that is meant.
class FaultyExecutor final : public Executor {
 public:
  FaultyExecutor(std::unique_ptr<Executor> executor, PartFault fault) : executor_(std::move(executor)), fault_(fault) {}

  void add_stepper(Stepper* stepper) override { executor_->add_stepper(stepper); }

  void submit(Work work) override {
    const int64_t call = calls_++;
    if (fault_.kind == PartFault::Kind::kThrows && call == fault_.at) throw std::runtime_error("an executor's fault");
    if (fault_.kind == PartFault::Kind::kLies && call == fault_.at) return;
    if (fault_.kind == PartFault::Kind::kHangs && call >= fault_.at) {
      const std::lock_guard lock(mutex_);
      kept_.push_back(std::move(work));
    } else {
      executor_->submit(std::move(work));
    }
  }

  void notify() noexcept override {
    if (fault_.kind != PartFault::Kind::kHangs || calls_ <= fault_.at) executor_->notify();
  }

  size_t queued() const noexcept override {
    const std::lock_guard lock(mutex_);
    return kept_.size() + executor_->queued();
  }

 private:
  const std::unique_ptr<Executor> executor_;
  const PartFault fault_;
  std::atomic<int64_t> calls_ = 0;
  mutable std::mutex mutex_;
  std::vector<Work> kept_;
};

/// A budget until the call to try_acquire that is meant.
class FaultyBudget final : public TokenBudget {
 public:
  FaultyBudget(int64_t capacity, std::function<void()> on_release, PartFault fault)
      : TokenBudget(capacity, std::move(on_release)), fault_(fault) {}

  bool try_acquire(int64_t tokens) override {
    const int64_t call = calls_++;
    if (fault_.kind == PartFault::Kind::kThrows && call == fault_.at) throw std::runtime_error("a budget's fault");
    if (fault_.kind == PartFault::Kind::kHangs && call >= fault_.at) return false;
    if (fault_.kind == PartFault::Kind::kLies && call == fault_.at) return true;
    return TokenBudget::try_acquire(tokens);
  }

  bool has_free(int64_t tokens) noexcept override {
    return (fault_.kind != PartFault::Kind::kHangs || calls_ < fault_.at) && TokenBudget::has_free(tokens);
  }

 private:
  const PartFault fault_;
  std::atomic<int64_t> calls_ = 0;
};

}  // namespace sluice::engine
