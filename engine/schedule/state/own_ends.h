#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace sluice::engine {

/// Tells when all nodes of this rank have ended an iteration: once each, in the order of the iterations, on the thread of the
/// node that ended it last. Other ranks may be behind. Thread-safe.
class OwnEnds {
 public:
  OwnEnds(size_t nodes, std::function<void(int64_t iteration)> on_all) : nodes_(nodes), on_all_(std::move(on_all)) {}

  /// Once a node and iteration. Every node ends its iterations in order.
  void node_ended(int64_t iteration) {
    {
      const std::lock_guard lock(mutex_);
      if (++ended_[iteration] < nodes_) return;
      ended_.erase(iteration);
    }
    on_all_(iteration);
  }

 private:
  const size_t nodes_;
  const std::function<void(int64_t)> on_all_;
  std::mutex mutex_;
  std::map<int64_t, size_t> ended_;  // nodes, of iterations that some have ended
};

}  // namespace sluice::engine
