#pragma once

#include <cstdint>

#include "models/kernels/machine.h"

namespace sluice::models {

/// out += grad^T x, the gradient of a linear layer's weight, all float32 and contiguous.
///
/// grad [rows, outputs]  with respect to what the layer gave
/// x    [rows, inputs]   what the layer was given
/// out  [outputs, inputs]; must not overlap the others
struct WeightGradientArguments {
  const float* grad = nullptr;
  const float* x = nullptr;
  float* out = nullptr;
  int64_t rows = 0, outputs = 0, inputs = 0;
};

/// Memory that each thread of add_weight_gradient() takes.
int64_t weight_gradient_scratch_floats();

/// Every element is one chain of multiply-adds in the order of the rows: the same for any number of threads. `machine` is for
/// tests of what runs elsewhere; it must not be better than this_machine().
void add_weight_gradient(const WeightGradientArguments& arguments, Machine machine = this_machine());

}  // namespace sluice::models
