#pragma once

#include <ATen/core/Tensor.h>

#include "models/kernels/packed_matrix.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// A linear layer: x (weight + the adapter's change)^T + bias. Handles of a layer's weights, which outlive it.
struct Projection {
  const at::Tensor& weight;  // [N,K]
  const at::Tensor& bias;    // [N], or undefined
  const Adapter& adapter;    // or none
};

/// out[T,N] (+)= the layer of x[T,K], an operand. `matrix` is the weight, packed. `out` is float32, or an operand, which is
/// rounded once and not added to.
void project(const Projection& layer, const PackedMatrix& matrix, const at::Tensor& x, const at::Tensor& out, bool add = false);

/// out[T,K] (+)= the gradient with respect to x, from that of the output, grad[T,N], an operand. `transposed` is the weight's
/// transpose, packed; `out` as in project().
void project_back(const Projection& layer, const PackedMatrix& transposed, const at::Tensor& grad, const at::Tensor& out,
                  bool add);

/// Adds the gradients of weight, bias and adapter, where they are wanted.
void add_gradients(const Projection& layer, const at::Tensor& grad, const at::Tensor& x);

}  // namespace sluice::models
