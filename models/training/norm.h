#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"

namespace sluice::models {

/// Each row of x normalised, in one pass over memory.
///
/// x       [T,H]  float32 on the CPU
/// weight  [H]
/// bias    [H], or undefined; only NormKind::kLayer has one
/// returns [T,H]  differentiable in all; the same for any number of threads
///
///   kRms         x / sqrt(mean(x^2) + eps) * weight                    (Zhang and Sennrich 2019, eq. 4)
///   kRmsFromOne  the same with 1 + weight
///   kLayer       (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias   (Ba, Kiros and Hinton 2016, eq. 3)
///
/// Keeps x, and one number a row (two for kLayer) for the backward.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, NormKind kind, double eps);

}  // namespace sluice::models
