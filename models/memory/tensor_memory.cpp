#include "models/memory/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>

namespace sluice::models {

// LibTorch tells it on the thread that allocates or frees. A block that was allocated unseen is not reported when it is freed.
class TensorMemory::Counter final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device device) override {
    if (!device.is_cpu()) return;
    const int64_t live = live_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    int64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < live && !peak_.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
    }
  }
  void reportOutOfMemory(int64_t, size_t, size_t, c10::Device) override {}
  bool memoryProfilingEnabled() const override { return true; }

  int64_t live() const { return live_.load(std::memory_order_relaxed); }
  int64_t take_peak() { return peak_.exchange(live(), std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> live_ = 0;
  std::atomic<int64_t> peak_ = 0;
};

TensorMemory::TensorMemory() : counter_(std::make_shared<Counter>()) {}

void TensorMemory::watch_this_thread() { c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, counter_); }

int64_t TensorMemory::live() const { return counter_->live(); }

int64_t TensorMemory::take_peak() { return counter_->take_peak(); }

}  // namespace sluice::models
