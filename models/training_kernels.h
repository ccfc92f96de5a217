#pragma once

#include <cstdint>

#include "models/machine.h"

namespace sluice::models {

// Row-wise kernels of the training path, forward and backward, on plain float32 pointers. Single-threaded; a row's result does
// not depend on the other rows. Callers split the rows.

/// x [rows, size], rows back to back.
struct RmsNormRows {
  const float* x = nullptr;
  const float* weight = nullptr;  // [size]
  int64_t rows = 0, size = 0;
};

/// out = x r weight with r = 1 / sqrt(mean(x^2) + eps); writes r to inverse [rows].
void rms_norm_forward(const RmsNormRows& in, float eps, float* out, float* inverse, Machine machine = this_machine());

/// With g = grad weight: grad_x = r g - x r^3 mean(g x); adds the sum over the rows of grad x r to grad_weight [size].
void rms_norm_backward(const RmsNormRows& in, const float* inverse, const float* grad, float* grad_x, float* grad_weight,
                       Machine machine = this_machine());

/// out = silu(gate) up, element by element.
void swiglu_forward(const float* gate, const float* up, int64_t count, float* out, Machine machine = this_machine());

/// With s = sigmoid(gate): grad_up = grad gate s, grad_gate = grad up s (1 + gate (1 - s)).
void swiglu_backward(const float* gate, const float* up, const float* grad, int64_t count, float* grad_gate, float* grad_up,
                     Machine machine = this_machine());

}  // namespace sluice::models
