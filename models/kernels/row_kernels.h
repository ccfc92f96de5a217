#pragma once

#include <cstdint>

#include "models/config/config.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/instruction_set.h"
#include "models/kernels/row_norm.h"

namespace sluice::models {

// Row-wise kernels of generation, computed in float32, split over ATen's threads. An element's bits depend on nothing but its
// row. `set` is for tests of what runs elsewhere; it must not be better than best_instruction_set().

/// Where a kernel leaves rows that the next product reads: one of the two, in the precision of the product. Rounded once.
struct OperandRows {
  float* wide = nullptr;
  Bfloat16* narrow = nullptr;

  const void* data() const { return wide ? static_cast<const void*>(wide) : narrow; }
};

/// out[row, :] = norm of x[row, :]. x, out [rows, size]; out may be x.
void normalize(const RowNorm& norm, const float* x, int64_t rows, int64_t size, OperandRows out,
               InstructionSet set = best_instruction_set());

/// out[row, :] = activation(x[row, :]) * up[row, :] (Shazeer 2020, "GLU variants"), or without `up` where that is null. x, up
/// [rows, size], both with the row stride `stride`; out [rows, size], contiguous.
void activate(Activation activation, const float* x, const float* up, int64_t stride, int64_t rows, int64_t size, OperandRows out,
              InstructionSet set = best_instruction_set());

/// out[i] = x[i], 0 <= i < count.
void narrow(const float* x, int64_t count, Bfloat16* out, InstructionSet set = best_instruction_set());

/// x[i] = cap tanh(x[i] / cap), 0 <= i < count; cap > 0.
void soft_cap(float* x, int64_t count, double cap, InstructionSet set = best_instruction_set());

}  // namespace sluice::models
