#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models {

/// x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang and Sennrich 2019, eq. 4), in one pass over memory.
///
/// x       [T,H]  float32 on the CPU
/// weight  [H]
/// returns [T,H]  differentiable in both; the same for any number of threads
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace sluice::models
