#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/precision.h"

namespace sluice::models::portable {

at::ScalarType dtype_of(Precision precision);

/// a [M,K] b [K,N], of one dtype: [M,N] float32. Sums are float32 in either precision: by the library's product of
/// narrow matrices with a wide result where it has one for the device, else of the same rounded numbers in float32.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b);

/// sum [M,N] float32 += a b. In place where the operands are float32, or the device adds products of narrow ones to wide sums;
/// else by a product beside it.
void add_wide_product(const at::Tensor& sum, const at::Tensor& a, const at::Tensor& b);

/// x, which may be rounded already, rounded to the precision: float32. x itself with Precision::kFloat32. The gradient goes
/// through as it is.
at::Tensor rounded(const at::Tensor& x, Precision precision);

/// x [T,K] weight [N,K]^T + bias [N], both rounded to the precision: [T,N] float32. `bias` may be undefined. Differentiable; the
/// backward rounds the gradient likewise and gives float32. Keeps x as it was given, and of the weight nothing but a handle: give
/// x in the precision's dtype.
at::Tensor product(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Precision precision);

}  // namespace sluice::models::portable
