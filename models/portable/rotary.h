#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models::portable {

/// x [T,N,D] float32 in the dtype, the first R numbers of each head rotated: their halves against each other, or neighbours.
/// Differentiable. Halves by our kernel (models/cuda/rotary.h) where the device has that.
///
/// angles [T,R]: of each token R/2 cosines, then R/2 sines; undefined: nothing is rotated
at::Tensor rotated(const at::Tensor& x, const at::Tensor& angles, bool neighbours, at::ScalarType dtype);

}  // namespace sluice::models::portable
