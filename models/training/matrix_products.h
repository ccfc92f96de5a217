#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::models {

/// Rows of a weight that add_input_gradient() transposes at once: a copy of a whole output embedding could be large.
constexpr int64_t kTransposedRows = 4096;

// The three products of a linear layer with weight [N,K], in the dtype of the arguments. float32 on the CPU runs our own kernels,
// whose results depend neither on the number of threads nor, row by row, on the batch; anything else goes to LibTorch.

/// x[T,K] weight^T + bias[N]: [T,N]. With `onto` [T,N] added: the residual connection. `bias` and `onto` may be undefined.
at::Tensor layer_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}, const at::Tensor& onto = {});

/// out[T,K] += grad[T,N] weight, the gradient with respect to x.
void add_input_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& weight);

/// out[N,K] += grad[T,N]^T x[T,K], the gradient with respect to the weight.
void add_weight_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x);

}  // namespace sluice::models
