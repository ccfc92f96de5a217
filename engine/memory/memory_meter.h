#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/memory/memory_report.h"

namespace sluice::engine {

int64_t resident_bytes();       // of this process, now
int64_t peak_resident_bytes();  // since it began

/// Counts LibTorch's tensors, of which the engine knows nothing. Both may be called from any thread.
struct TensorCounter {
  std::function<int64_t()> live_bytes;
  std::function<int64_t()> take_peak_bytes;  // since the last call
};

/// Keeps the peaks of what a run holds. Thread-safe.
class MemoryMeter {
 public:
  /// Before models and nodes are made. `tensors` may be empty.
  explicit MemoryMeter(TensorCounter tensors);

  void watch(std::map<std::string, std::shared_ptr<Model>> models);

  /// Looks at everything; the peaks of columns and of the KV pool are told.
  void sample(int64_t columns, int64_t pool_held, int64_t pool_used);

  MemoryPeaks peaks() const;

  /// Since the last call.
  int64_t take_tensor_peak();

 private:
  void count_tensors();

  const TensorCounter tensors_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Model>> models_;
  MemoryPeaks peaks_;
  int64_t tensor_peak_ = 0;
};

}  // namespace sluice::engine
