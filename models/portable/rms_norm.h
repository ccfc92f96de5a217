#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models::portable {

/// x [..., H] over the root of its mean square, times weight [H], or 1 + weight with from_one, in the dtype. Differentiable.
/// Where the device has our kernel (models/cuda/rms_norm.h) and all is float32, by that, which keeps x and a number of each
/// row.
at::Tensor rms_normalised(const at::Tensor& x, const at::Tensor& weight, double eps, bool from_one, at::ScalarType dtype);

}  // namespace sluice::models::portable
