#pragma once

#include <cstdint>
#include <functional>
#include <mutex>

namespace sluice::engine {

/// The tokens that may be in flight. Thread-safe. Never blocks: whoever is refused is told through `on_release` when to try again.
class TokenBudget {
 public:
  /// `on_release` is called without a lock held, on the thread that released.
  TokenBudget(int64_t capacity, std::function<void()> on_release) : capacity_(capacity), on_release_(std::move(on_release)) {}

  /// Takes `tokens` of credit if they are free.
  bool try_acquire(int64_t tokens);

  /// Gives back credit that was acquired. More than was acquired is an InternalError.
  void release(int64_t tokens);

  int64_t capacity() const { return capacity_; }
  int64_t in_flight() const;
  int64_t take_peak();  // since the last call

 private:
  const int64_t capacity_;
  const std::function<void()> on_release_;
  mutable std::mutex mutex_;
  int64_t in_flight_ = 0;
  int64_t peak_ = 0;
};

}  // namespace sluice::engine
