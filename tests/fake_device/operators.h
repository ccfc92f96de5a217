#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "tests/fake_device/fake_device.h"

namespace sluice::fake {

/// Registers what computes on the devices: the CPU's kernels, in the work of streams. Once a process.
void install_operators();

/// Queues work on the current stream of the device, and counts it.
void queue_on(c10::Device device, std::function<void()> work);

/// Until the current stream of the device has done what is queued. Throws what work has thrown.
void wait_for_host(c10::Device device);

Counts take_operator_counts();  // those that operators have

}  // namespace sluice::fake
