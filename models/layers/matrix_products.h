#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/config/precision.h"
#include "models/kernels/packed_matrix.h"

namespace sluice::models {

// The three products of a linear layer with weight [N,K], on the CPU. Operands (operand.h) are of one precision, sums float32. A
// row's result depends neither on the number of threads nor on the batch; nothing is kept of a weight between calls.

/// Several weights that read the same input become one matrix, their outputs in order. Weights may be float32, quantised
/// (quantised_rows.h) or, rounded already, bfloat16.
PackedMatrix packed(at::ArrayRef<at::Tensor> weights, Precision precision);

/// weight^T: for gradients of inputs. Likewise; nothing is widened.
PackedMatrix packed_transposed(const at::Tensor& weight, Precision precision);

/// out[T,N] = x[T,K] matrix^T + bias[N], which may be undefined. Rows of x and out may be apart. A float32 `out` may be added to;
/// one of bfloat16 is rounded once.
void multiply(const at::Tensor& x, const PackedMatrix& matrix, const at::Tensor& bias, const at::Tensor& out, bool add = false);

/// x[T,K] weight^T + bias[N]: float32 [T,N]. With `onto` [T,N] of any dtype added. `bias` and `onto` may be
/// undefined.
at::Tensor layer_output(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}, const at::Tensor& onto = {});

/// out[T,K] += grad[T,N] weight, the gradient with respect to x. float32.
void add_input_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& weight);

/// out[N,K] += grad[T,N]^T x[T,K], the gradient with respect to the weight. `out` is float32; an undefined one is not wanted.
/// Rows of operands in bfloat16 may be apart.
void add_weight_gradient(const at::Tensor& out, const at::Tensor& grad, const at::Tensor& x);

/// out[N] += the sum of the rows of grad[T,N], the gradient with respect to the bias; an undefined `out` is not wanted.
void add_bias_gradient(const at::Tensor& out, const at::Tensor& grad);

}  // namespace sluice::models
