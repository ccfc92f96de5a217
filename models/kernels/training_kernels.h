#pragma once

#include <cstdint>

#include "models/kernels/machine.h"
#include "models/kernels/row_norm.h"

namespace sluice::models {

// Row-wise kernels of the training path, forward and backward, on plain float32 pointers. Single-threaded; a row's result does
// not depend on the other rows. Callers split the rows. The forward gives the bits of generation's (kernels_elementwise.h).
// `machine` is for tests of what runs elsewhere; it must not be better than this_machine().

/// x [rows, size], rows back to back.
struct NormRows {
  RowNorm norm;
  const float* x = nullptr;
  int64_t rows = 0, size = 0;
};

/// What the backward needs of each row: [rows] each.
struct NormStatistics {
  float* mean = nullptr;     // only NormKind::kLayer has one; else null
  float* inverse = nullptr;  // 1 / sqrt(mean square + epsilon)
};

/// out = the norm of each row of x; writes its statistics.
void norm_forward(const NormRows& in, const NormStatistics& statistics, float* out, Machine machine = this_machine());

/// Added to, not overwritten: callers sum over blocks of rows. [size] each; `bias` is null where the norm has none.
struct NormWeightGradient {
  float* weight = nullptr;
  float* bias = nullptr;
};

/// With n = (x - mean) inverse and g = grad weight: grad_x = inverse (g - mean(g) - n mean(g n)), mean(g) only for kLayer; adds
/// the sums over the rows of grad n to the weight's gradient and of grad to the bias's.
void norm_backward(const NormRows& in, const NormStatistics& statistics, const float* grad, float* grad_x,
                   const NormWeightGradient& grad_weights, Machine machine = this_machine());

/// out = activation(gate) up, element by element; activation(gate) where `up` is null.
void activation_forward(Activation activation, const float* gate, const float* up, int64_t count, float* out,
                        Machine machine = this_machine());

/// grad_gate = grad up activation'(gate), grad_up = grad activation(gate); without `up` neither `up` nor grad_up.
void activation_backward(Activation activation, const float* gate, const float* up, const float* grad, int64_t count,
                         float* grad_gate, float* grad_up, Machine machine = this_machine());

}  // namespace sluice::models
