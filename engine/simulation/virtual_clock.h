#pragma once

#include "engine/observe/clock.h"

namespace sluice::engine {

/// The time of a simulation. One thread.
class VirtualClock final : public Clock {
 public:
  int64_t now_ns() const override { return now_ns_; }
  void set(int64_t now_ns) { now_ns_ = now_ns; }

 private:
  int64_t now_ns_ = 0;
};

}  // namespace sluice::engine
