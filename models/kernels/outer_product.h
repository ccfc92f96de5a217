#pragma once

#include <cstdint>

#include "models/config/precision.h"
#include "models/kernels/instruction_set.h"

namespace sluice::models {

/// out += grad^T x, the gradient of a linear layer's weight: operands in float32 or bfloat16, sums in float32.
struct OuterProductArguments {
  const void* grad = nullptr;                 // [rows, outputs], row stride grad_stride: with respect to what the layer gave
  const void* x = nullptr;                    // [rows, inputs], row stride x_stride: what the layer was given
  Precision precision = Precision::kFloat32;  // of both
  float* out = nullptr;                       // [outputs, inputs], row stride out_stride; must not overlap the others
  int64_t grad_stride = 0, x_stride = 0, out_stride = 0;  // elements
  int64_t rows = 0, outputs = 0, inputs = 0;
};

/// Memory that each thread of add_outer_product() takes at its first call and keeps, in bytes.
int64_t outer_product_scratch_bytes();

/// Every element is one chain in the order of the rows, of multiply-adds, or of sums of two products where the machine has an
/// instruction for these in bfloat16: the same for any number of threads. `set` is for tests of what runs elsewhere; it must not
/// be better than best_instruction_set().
void add_outer_product(const OuterProductArguments& arguments, InstructionSet set = best_instruction_set());

}  // namespace sluice::models
