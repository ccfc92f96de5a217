#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"

namespace sluice::models {

/// How rows are normalised:
///
///   kRms         x / sqrt(mean(x^2) + eps) * weight                    (Zhang and Sennrich 2019, eq. 4)
///   kRmsFromOne  the same with 1 + weight
///   kLayer       (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias   (Ba, Kiros and Hinton 2016, eq. 3)
struct Norm {
  NormKind kind = NormKind::kRms;
  double eps = 1e-6;
  at::Tensor weight;  // [H]
  at::Tensor bias;    // [H], or undefined; only NormKind::kLayer has one
};

/// What the backward of a norm needs.
struct KeptNorm {
  at::Tensor x;                // [T,H] as it was given; or rounded, if its gradient is to be an operand in its place
  at::Tensor means, inverses;  // [T]; no means where nothing is subtracted
};

/// out[T,H] = each row of x normalised, in one pass over memory. x is float32; `out` float32 or an operand, rounded once.
void norm_forward(const Norm& norm, const at::Tensor& x, const at::Tensor& out, KeptNorm& kept);

/// The gradient of norm_forward() with respect to x, from that of its result: grad_x (+)= ...; the weight's and the bias's are
/// added to gradient_of(). kept.x and grad are float32 and grad_x float32 or an operand, or all three are operands. `grad_x` may
/// be `grad`; only a float32 one is added to.
void norm_backward(const Norm& norm, const KeptNorm& kept, const at::Tensor& grad, const at::Tensor& grad_x, bool add);

/// What norm_forward() keeps of so many rows beside x, and what norm_backward() allocates.
int64_t norm_statistics_bytes(NormKind kind, int64_t rows);
int64_t norm_backward_bytes(NormKind kind, int64_t rows, int64_t size);

/// Each row of x[T,H] normalised, float32: differentiable in x, weight and bias; the same for any number of threads.
at::Tensor normalised(const Norm& norm, const at::Tensor& x);

}  // namespace sluice::models
