#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::models {

/// How many values of a dense tensor are NaN or infinite: float32, bfloat16 or float16. Reads at the speed of memory; const use
/// from many threads.
int64_t count_not_finite(const at::Tensor& values);

}  // namespace sluice::models
