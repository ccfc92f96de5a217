#pragma once

#include "models/weights.h"

namespace sluice::models {

/// x (weight + change)^T (+ bias), differentiable in all arguments and the factors of the change. Arguments that need no gradient
/// cost nothing in the backward.
///
/// x       [T,K]
/// weight  [N,K]
/// bias    [N], or undefined
/// adapter the change, or none
/// returns [T,N]
at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}, const Adapter& adapter = {});

/// residual[T,N] + x (weight + change)^T (+ bias), likewise.
at::Tensor linear_layer_onto(const at::Tensor& residual, const at::Tensor& x, const at::Tensor& weight,
                             const at::Tensor& bias = {}, const Adapter& adapter = {});

}  // namespace sluice::models
