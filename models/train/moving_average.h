#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models {

/// Moves `average`[n] towards `live`[n] by the share 1 - decay of the difference, in place: average = decay average + (1 - decay)
/// live. Both float32, contiguous, on one device. 0 <= decay < 1; with 0 the average is `live`, and what is equal stays as it is.
///
/// Each number by itself, in float32, as average + (1 - decay) (live - average), or from the other end where decay is at most .5:
/// so it has the same bits on any number of threads. On all threads that loops use from here; on a device LibTorch's lerp.
void move_average(const at::Tensor& average, const at::Tensor& live, double decay);

}  // namespace sluice::models
