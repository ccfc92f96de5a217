#pragma once

#include <functional>

#include "models/config/precision.h"
#include "models/layers/weights.h"

namespace sluice::models {

// What an adapter adds to the products of its linear layer, forward and backward. float32 on the CPU; bfloat16 arguments are
// widened. Nothing is kept for the backward but x, which the layer keeps anyway: x a^T is computed again.

/// out[T,N] += scale (x[T,K] a^T) b^T. float32; rows of `out` may be apart.
void add_adapter_output(const at::Tensor& out, const at::Tensor& x, const Adapter& adapter);

/// out[T,K] += the gradient with respect to x of what add_adapter_output() added, for grad[T,N] with respect to the layer's
/// output.
void add_adapter_input_gradient(const at::Tensor& out, const at::Tensor& grad, const Adapter& adapter);

/// Adds the gradients of a and b, where they are wanted.
void add_adapter_gradients(const Adapter& adapter, const at::Tensor& grad, const at::Tensor& x);

/// What the three widen of arguments in this precision that have so many columns together.
int64_t widened_bytes(Precision precision, int64_t rows, int64_t columns);

/// weight + scale b a, a new float32 tensor that needs no gradient, of a weight in float32, bfloat16 or quantised; `weight`
/// itself, detached, where there is no adapter, or its values if it is quantised. Bit-identical for any number of threads.
at::Tensor merged_matrix(const at::Tensor& weight, const Adapter& adapter);

/// Calls visit(first, rows) with rows [first, ...) of merged_matrix(), one range after the other, so that no more than some
/// megabytes of it exist at a time. A weight of one dimension or none comes whole.
void for_each_merged_rows(const at::Tensor& weight, const Adapter& adapter,
                          const std::function<void(int64_t first, const at::Tensor& rows)>& visit);

}  // namespace sluice::models
