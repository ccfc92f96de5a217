#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/contract/node.h"
#include "engine/memory/memory_report.h"

namespace sluice::engine {

int64_t resident_bytes();       // of this process, now
int64_t peak_resident_bytes();  // since it began

/// Counts LibTorch's tensors, of which the engine knows nothing. All may be called from any thread.
struct TensorCounter {
  std::function<int64_t()> live_bytes;                                   // on the host
  std::function<int64_t()> take_peak_bytes;                              // likewise, since the last call
  std::function<int64_t(const std::string& device)> peak_bytes_on = {};  // of a device, so far
};

/// What the KV pools of rollouts hold, by the place of their models: kHost, or a device.
using PoolsByPlace = std::map<std::string, Rollout::PoolBytes>;

/// Keeps the peaks of what a run holds. Thread-safe.
class MemoryMeter {
 public:
  /// Before models and nodes are made. `tensors` may be empty.
  explicit MemoryMeter(TensorCounter tensors);

  /// `plan`: where each of them is; it outlives this.
  void watch(const Plan& plan, std::map<std::string, std::shared_ptr<Model>> models);

  /// Looks at everything; the peaks of columns and of the KV pools are told.
  void sample(int64_t columns, const PoolsByPlace& pools);

  MemoryPeaks peaks() const;

  /// Since the last call.
  int64_t take_tensor_peak();

 private:
  void count_tensors();
  PlacePeaks& peaks_of(const std::string& place);

  const TensorCounter tensors_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::shared_ptr<Model>>> models_;  // by place
  MemoryPeaks peaks_;
  int64_t tensor_peak_ = 0;
};

}  // namespace sluice::engine
