#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/kernels/packed_matrix.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// One linear layer as generation reads it, or several that read the same rows, their outputs one after the other.
struct PackedLinear {
  PackedMatrix matrix;
  at::Tensor bias;  // [outputs] float32, or undefined

  int64_t bytes() const { return matrix.bytes() + (bias.defined() ? static_cast<int64_t>(bias.nbytes()) : 0); }
};

/// Copies the values of `layers` that are there, adapters merged in. The first call allocates, those after it are of the same
/// shapes and use the same memory. Throws InternalError for other shapes.
void pack(std::span<const LinearWeights* const> layers, Precision precision, PackedLinear& to);

/// out[rows, outputs] (+)= the layer of x[rows, inputs], rows side by side in the precision of the matrix. Allocates nothing.
void project(const PackedLinear& layer, const void* x, int64_t rows, float* out, bool accumulate = false);

/// Likewise, into rows that are `stride` apart.
void project(const PackedLinear& layer, const void* x, int64_t rows, float* out, int64_t stride, bool accumulate);

}  // namespace sluice::models
