#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "models/kernels/packed_matrix.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// An adapter that is not merged into its matrix: training's products with its factors, in float32.
struct PackedAdapter {
  int64_t first = 0;  // of the outputs that it changes
  PackedMatrix a, b;  // [r, inputs], [its outputs, r]
  float scale = 0;

  int64_t bytes() const { return a.bytes() + b.bytes(); }
  static int64_t bytes_for(int64_t rank, int64_t outputs, int64_t inputs);
};

/// One linear layer as generation reads it, or several that read the same rows, their outputs one after the other.
struct PackedLinear {
  PackedMatrix matrix;
  at::Tensor bias;                      // [outputs] float32, or undefined
  std::vector<PackedAdapter> adapters;  // of a matrix that stays quantised

  /// Without the quantised rows that it shares.
  int64_t bytes() const;
};

/// Copies the values of `layers` that are there, adapters merged in; where none is, `to` stays empty. The first call allocates,
/// those after it are of the same shapes and use the same memory. Throws InternalError for other shapes. Weights that are
/// quantised stay so and are shared, and their adapters stay apart: the layer then gives the bits that training computes.
void pack(std::span<const LinearWeights* const> layers, Precision precision, PackedLinear& to);

/// out[rows, outputs] (+)= the layer of x[rows, inputs], rows side by side in the precision of the matrix. Allocates nothing, but
/// for adapters a block of rows a thread, once.
void project(const PackedLinear& layer, const void* x, int64_t rows, float* out, bool accumulate = false);

/// Likewise, into rows that are `stride` apart.
void project(const PackedLinear& layer, const void* x, int64_t rows, float* out, int64_t stride, bool accumulate);

}  // namespace sluice::models
