#pragma once

#include <cstdint>

#include "models/kernels/instruction_set.h"

namespace sluice::models {

/// A stretch of a model's flat buffers, float32 each.
struct AdamWRange {
  float* weights = nullptr;
  float* gradients = nullptr;
  float* first_moments = nullptr;
  float* second_moments = nullptr;
  int64_t count = 0;
};

/// What one step does to every element: with g = gradient gradient_scale,
///   m += (1 - beta1) (g - m),  v += (1 - beta2) (g g - v),  w = w kept - step_size m / (sqrt(v) root_scale + epsilon).
struct AdamWFactors {
  float gradient_scale = 1;
  float new_first = 0;   // 1 - beta1
  float new_second = 0;  // 1 - beta2
  float kept = 1;        // 1 - learning rate times weight decay
  float step_size = 0;   // learning rate over 1 - beta1^t
  float root_scale = 1;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

/// One step of Adam with decoupled weight decay (Loshchilov and Hutter 2019, algorithm 2) in one pass over memory, which leaves
/// the gradients zero. Single-threaded; an element's result does not depend on where the range begins. `set` is for tests of
/// what runs elsewhere; it must not be better than best_instruction_set().
void adamw_step(const AdamWRange& range, const AdamWFactors& factors, InstructionSet set = best_instruction_set());

/// The sum of the squares, in double precision, where each square is exact: the same on every machine.
double sum_of_squares(const float* values, int64_t count, InstructionSet set = best_instruction_set());

}  // namespace sluice::models
