#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models::portable {

/// x [T,N,D] float32 in the dtype, the first R numbers of each head turned: their halves against each other, or neighbours.
/// Differentiable. Halves by our kernel (models/cuda/turn.h) where the device has that.
///
/// turns [T,R]: of each token R/2 cosines, then R/2 sines; undefined: nothing is turned
at::Tensor rotated(const at::Tensor& x, const at::Tensor& turns, bool neighbours, at::ScalarType dtype);

}  // namespace sluice::models::portable
