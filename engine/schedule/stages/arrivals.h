#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace sluice::engine {

/// Lets a packet of a node through once it has arrived from all inputs. Branches share the micro-batch, so there is nothing to
/// merge. Owned by the node's stage in the flow graph. Thread-safe. Nothing here waits or fails: what never arrives is named by
/// any().
class Arrivals {
 public:
  explicit Arrivals(size_t inputs) : inputs_(inputs) {}

  /// True: it was the last of them.
  bool complete(int64_t sequence) {
    const std::lock_guard lock(mutex_);
    if (++arrived_[sequence] < inputs_) return false;
    arrived_.erase(sequence);
    return true;
  }

  /// A packet has come from some, not from all.
  bool any() const {
    const std::lock_guard lock(mutex_);
    return !arrived_.empty();
  }

 private:
  const size_t inputs_;
  mutable std::mutex mutex_;
  std::map<int64_t, size_t> arrived_;
};

}  // namespace sluice::engine
