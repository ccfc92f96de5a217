#pragma once

#include <cstdint>
#include <type_traits>

#include "models/kernels/bfloat16.h"
#include "models/kernels/instruction_set.h"
#include "models/kernels/rotary.h"
#include "models/kernels/row_norm.h"

namespace sluice::models {

// Row-wise kernels of the training path, forward and backward, on plain pointers. Numbers that products take are `Number`: float,
// or Bfloat16, which every kernel widens, computes with in float32 and rounds once. Single-threaded; a row's result does not
// depend on the other rows. Callers split the rows. The forward gives the bits of generation's (row_kernels.h). `set`
// is for tests of what runs elsewhere; it must not be better than best_instruction_set().

/// x [rows, size], rows back to back; `In` is float but where what a norm was given is kept rounded.
template <class In = float>
struct NormRows {
  RowNorm norm;
  const In* x = nullptr;
  int64_t rows = 0, size = 0;
};

/// What the backward needs of each row: [rows] each.
struct NormStatistics {
  float* mean = nullptr;     // only NormKind::kLayer has one; else null
  float* inverse = nullptr;  // 1 / sqrt(mean square + epsilon)
};

/// out = the norm of each row of x; writes its statistics.
template <class Number>
void norm_forward(const NormRows<>& in, const NormStatistics& statistics, Number* out,
                  InstructionSet set = best_instruction_set());

/// Added to, not overwritten: callers sum over blocks of rows. [size] each; `bias` is null where the norm has none.
struct NormWeightGradient {
  float* weight = nullptr;
  float* bias = nullptr;
};

/// With n = (x - mean) inverse and g = grad weight: grad_x = inverse (g - mean(g) - n mean(g n)), mean(g) only for kLayer, added
/// to what is in grad_x if `add`; adds the sums over the rows of grad n to the weight's gradient and of grad to the bias's.
/// `grad_x` may be `grad`. For (In, Grad, Out) = (float, float, Number) and (Number, Number, Number).
template <class In, class Grad, class Out>
void norm_backward(const NormRows<In>& in, const NormStatistics& statistics, const Grad* grad, Out* grad_x, bool add,
                   const NormWeightGradient& grad_weights, InstructionSet set = best_instruction_set());

/// What activation_forward() writes, element by element; `kept` are the arguments rounded, for the backward: null where they are
/// not wanted.
template <class Number>
struct Activated {
  Number* out = nullptr;
  Number *kept_gate = nullptr, *kept_up = nullptr;
};

/// out = activation(gate) up; activation(gate) where `up` is null. `out` may be `gate`.
template <class Number>
void activation_forward(Activation activation, const float* gate, const float* up, int64_t count, const Activated<Number>& to,
                        InstructionSet set = best_instruction_set());

/// With grad, the gradient of what activation_forward() gives, and the arguments as they were kept: gate becomes grad up
/// activation'(gate), up becomes grad activation(gate), grad becomes activation(gate) up. `up` may be null.
template <class Number>
void activation_backward(Activation activation, Number* gate, std::type_identity_t<Number>* up, int64_t count, Number* grad,
                         InstructionSet set = best_instruction_set());

/// Each of `heads` heads of a token, rotated; what is not rotated as it is.
template <class Number>
void rotate_heads(const float* token, int64_t heads, int64_t head_dim, const Rotary& rotary, Number* out,
                  InstructionSet set = best_instruction_set());

/// out[size] += the sum of the rows of x[rows, size], rows `stride` apart.
template <class Number>
void add_column_sums(const Number* x, int64_t stride, int64_t rows, int64_t size, float* out,
                     InstructionSet set = best_instruction_set());

}  // namespace sluice::models
