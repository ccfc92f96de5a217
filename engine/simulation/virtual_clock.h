#pragma once

#include <cstdint>
#include <limits>

#include "engine/observe/clock.h"

namespace sluice::engine {

/// The time of what never comes.
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// The time of a simulation. One thread.
class VirtualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  void set(int64_t now_ns) { now_ns_ = now_ns; }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace sluice::engine
