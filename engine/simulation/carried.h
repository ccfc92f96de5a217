#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::engine {

/// What links between ranks have carried of one kind: how much, and during which time, on whatever link. A plain value.
struct Carried {
  int64_t bytes = 0;
  int64_t ns = 0;
  int64_t until_ns = 0;  // when the last of it arrives

  /// Sets out at `now`, not before what was added last, and arrives after `takes`.
  void add(int64_t now, int64_t takes, int64_t more_bytes) {
    bytes += more_bytes;
    const int64_t end = now + takes;
    ns += std::max<int64_t>(0, end - std::max(now, until_ns));
    until_ns = std::max(until_ns, end);
  }
};

}  // namespace sluice::engine
