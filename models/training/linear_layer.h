#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models {

/// x weight^T (+ bias), differentiable in all arguments.
///
/// x       [T,K]
/// weight  [N,K]
/// bias    [N], or undefined
/// returns [T,N]
at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {});

/// residual[T,N] + x weight^T (+ bias), differentiable in all arguments.
at::Tensor linear_layer_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias = {});

}  // namespace sluice::models
