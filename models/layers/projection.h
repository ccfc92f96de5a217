#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/packed_matrix.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// out[T,N] (+)= the layer of x[T,K], an operand. `matrix` is the weight, packed. `out` is float32, or an operand, which is
/// rounded once and not added to.
void project(const LinearWeights& layer, const PackedMatrix& matrix, const at::Tensor& x, const at::Tensor& out,
             bool add = false);

/// out[T,K] (+)= the gradient with respect to x, from that of the output, grad[T,N], an operand. `transposed` is the weight's
/// transpose, packed; `out` as in project().
void project_back(const LinearWeights& layer, const PackedMatrix& transposed, const at::Tensor& grad, const at::Tensor& out,
                  bool add);

/// Adds the gradients of weight, bias and adapter, where they are wanted.
void add_gradients(const LinearWeights& layer, const at::Tensor& grad, const at::Tensor& x);

}  // namespace sluice::models
