#include "models/memory/device_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

namespace sluice::models {

int64_t peak_bytes_on(c10::Device device) {
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (allocator == nullptr || !allocator->initialized()) return 0;
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return allocator->getDeviceStats(device.index()).allocated_bytes[kAll].peak;
}

}  // namespace sluice::models
