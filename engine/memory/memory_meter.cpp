#include "engine/memory/memory_meter.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace sluice::engine {

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

MemoryMeter::MemoryMeter(TensorCounter tensors) : tensors_(std::move(tensors)) { peaks_.program = resident_bytes(); }

void MemoryMeter::watch(std::map<std::string, std::shared_ptr<Model>> models) {
  const std::lock_guard lock(mutex_);
  models_ = std::move(models);
}

void MemoryMeter::count_tensors() {
  if (!tensors_.take_peak_bytes) return;
  const int64_t peak = tensors_.take_peak_bytes();
  tensor_peak_ = std::max(tensor_peak_, peak);
  peaks_.tensors = std::max(peaks_.tensors, peak);
}

void MemoryMeter::sample(int64_t columns, int64_t pool_held, int64_t pool_used) {
  const std::lock_guard lock(mutex_);
  count_tensors();
  ModelBytes all;
  for (const auto& [name, model] : models_) {
    const ModelBytes of = model->bytes();
    all.weights += of.weights, all.copies += of.copies, all.gradients += of.gradients, all.optimizer += of.optimizer;
  }
  peaks_.models = all;
  peaks_.columns = std::max(peaks_.columns, columns);
  peaks_.pool_held = pool_held;
  peaks_.pool_used = std::max(peaks_.pool_used, pool_used);
  peaks_.resident = std::max(peaks_.resident, peak_resident_bytes());
}

MemoryPeaks MemoryMeter::peaks() const {
  const std::lock_guard lock(mutex_);
  return peaks_;
}

int64_t MemoryMeter::take_tensor_peak() {
  const std::lock_guard lock(mutex_);
  count_tensors();
  return std::exchange(tensor_peak_, 0);
}

}  // namespace sluice::engine
