#pragma once

#include "models/weights.h"

namespace sluice::models {

// What an adapter adds to the products of its linear layer, forward and backward. float32 on the CPU; bfloat16 arguments are
// widened. Nothing is kept for the backward but x, which the layer keeps anyway: x a^T is computed again.

/// out[T,N] += scale (x[T,K] a^T) b^T.
void add_adapter_output(const at::Tensor& out, const at::Tensor& x, const Adapter& adapter);

/// Where add_adapter_gradients() adds to; undefined: not wanted.
struct AdapterGradients {
  at::Tensor x;  // [T,K]
  at::Tensor a;  // [r,K]
  at::Tensor b;  // [N,r]
};

/// Adds the gradients of what add_adapter_output() added, for grad[T,N] with respect to the output of the layer.
void add_adapter_gradients(const AdapterGradients& to, const at::Tensor& grad, const at::Tensor& x, const Adapter& adapter);

}  // namespace sluice::models
