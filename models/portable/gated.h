#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"
#include "models/layers/weights.h"

namespace sluice::models::portable {

/// activation(gate) * up in the dtype, of float32 [T,I]. Differentiable. Where the device has our kernel (models/cuda/gated.h)
/// by that, which keeps gate and up alone.
at::Tensor gated(Activation activation, const at::Tensor& gate, const at::Tensor& up, at::ScalarType dtype);

/// Whether gated_products() can do it: our kernel is there, x is bfloat16, and nothing is added to either product.
bool multiplies_gated(const at::Tensor& x, const LinearWeights& gate, const LinearWeights& up);

/// gated() of the two products of x [T,K] with weights [I,K], all rounded to bfloat16: [T,I] bfloat16. Differentiable. The
/// backward of these products rounds the gradients of gate and up, so the kernel gives them rounded: in float32 they are never
/// written.
at::Tensor gated_products(Activation activation, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& up);

}  // namespace sluice::models::portable
