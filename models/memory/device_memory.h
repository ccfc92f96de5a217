#pragma once

#include <c10/core/Device.h>

#include <cstdint>

namespace sluice::models {

/// The most bytes that tensors have had on a device beside the CPU at a time, as its allocator counts them; 0: it does not, or
/// nothing was allocated there. From any thread.
int64_t peak_bytes_on(c10::Device device);

}  // namespace sluice::models
