#include "engine/memory/memory_meter.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "engine/memory/memory_bound.h"

namespace sluice::engine {

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// Not getrusage(), whose figure is that of the program before an exec, too.
int64_t peak_resident_bytes() {
  constexpr std::string_view kHighWaterMark = "VmHWM:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(kHighWaterMark)) return std::atoll(line.c_str() + kHighWaterMark.size()) * 1024;
  return resident_bytes();
}

MemoryMeter::MemoryMeter(TensorCounter tensors) : tensors_(std::move(tensors)) { peaks_.program = resident_bytes(); }

void MemoryMeter::watch(const Plan& plan, std::map<std::string, std::shared_ptr<Model>> models) {
  const std::lock_guard lock(mutex_);
  for (const PlanModel& model : plan.models)
    if (const auto found = models.extract(model.name)) models_[model.facts.device].push_back(found.mapped());
}

PlacePeaks& MemoryMeter::peaks_of(const std::string& place) { return place == kHost ? peaks_.host : peaks_.devices[place]; }

void MemoryMeter::count_tensors() {
  for (const auto& [place, models] : models_) {
    if (place != kHost && tensors_.peak_bytes_on) peaks_of(place).tensors = tensors_.peak_bytes_on(place);
  }
  if (!tensors_.take_peak_bytes) return;
  const int64_t peak = tensors_.take_peak_bytes();
  tensor_peak_ = std::max(tensor_peak_, peak);
  peaks_.host.tensors = std::max(peaks_.host.tensors, peak);
}

void MemoryMeter::sample(int64_t columns, const PoolsByPlace& pools) {
  const std::lock_guard lock(mutex_);
  count_tensors();
  int64_t of_others = 0;
  for (const auto& [place, models] : models_) {
    ModelBytes all;
    for (const auto& model : models) {
      const ModelBytes of = model->bytes();
      of_others += of.of_others;
      all.weights += of.weights, all.copies += of.copies, all.gradients += of.gradients, all.optimizer += of.optimizer;
    }
    peaks_of(place).models = all;
  }
  for (const auto& [place, pool] : pools) {
    PlacePeaks& peaks = peaks_of(place);
    peaks.pool_held = pool.held;
    peaks.pool_used = std::max(peaks.pool_used, pool.used);
  }
  peaks_.columns = std::max(peaks_.columns, columns);
  peaks_.resident = std::max(peaks_.resident, peak_resident_bytes() - of_others);
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
