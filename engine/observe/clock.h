#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::engine {

/// The time of a run in nanoseconds from its beginning: real, or virtual in a simulation. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() const = 0;
};

class SteadyClock final : public Clock {
 public:
  int64_t now_ns() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }

  /// When that was, on the steady clock of the machine.
  int64_t begin_ns() const { return std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count(); }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sluice::engine
