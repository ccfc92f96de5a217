#include "models/kernels/training_kernels.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

namespace sluice::models {
namespace {

#define SLUICE_KERNELS "models/kernels/training_kernels.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

template <class Number>
void norm_forward(const NormRows<>& in, const NormStatistics& statistics, Number* out, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.norm_forward(in, statistics, out); });
}

template <class In, class Grad, class Out>
void norm_backward(const NormRows<In>& in, const NormStatistics& statistics, const Grad* grad, Out* grad_x, bool add,
                   const NormWeightGradient& grad_weights, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.norm_backward(in, statistics, grad, grad_x, add, grad_weights); });
}

template <class Number>
void activation_forward(Activation activation, const float* gate, const float* up, int64_t count, const Activated<Number>& to,
                        InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.activation_forward(activation, gate, up, count, to); });
}

template <class Number>
void activation_backward(Activation activation, Number* gate, std::type_identity_t<Number>* up, int64_t count, Number* grad,
                         InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.activation_backward(activation, gate, up, count, grad); });
}

template <class Number>
void rotate_heads(const float* token, int64_t heads, int64_t head_dim, const Rotary& rotary, Number* out, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.rotate_heads(token, heads, head_dim, rotary, out); });
}

template <class Number>
void add_column_sums(const Number* x, int64_t stride, int64_t rows, int64_t size, float* out, InstructionSet set) {
  with_kernels(set, [&](auto kernels) { kernels.add_column_sums(x, stride, rows, size, out); });
}

template void norm_forward(const NormRows<>&, const NormStatistics&, float*, InstructionSet);
template void norm_forward(const NormRows<>&, const NormStatistics&, Bfloat16*, InstructionSet);
template void norm_backward(const NormRows<>&, const NormStatistics&, const float*, float*, bool, const NormWeightGradient&,
                            InstructionSet);
template void norm_backward(const NormRows<>&, const NormStatistics&, const float*, Bfloat16*, bool, const NormWeightGradient&,
                            InstructionSet);
template void norm_backward(const NormRows<Bfloat16>&, const NormStatistics&, const Bfloat16*, Bfloat16*, bool,
                            const NormWeightGradient&, InstructionSet);
template void activation_forward(Activation, const float*, const float*, int64_t, const Activated<float>&, InstructionSet);
template void activation_forward(Activation, const float*, const float*, int64_t, const Activated<Bfloat16>&, InstructionSet);
template void activation_backward(Activation, float*, float*, int64_t, float*, InstructionSet);
template void activation_backward(Activation, Bfloat16*, Bfloat16*, int64_t, Bfloat16*, InstructionSet);
template void rotate_heads(const float*, int64_t, int64_t, const Rotary&, float*, InstructionSet);
template void rotate_heads(const float*, int64_t, int64_t, const Rotary&, Bfloat16*, InstructionSet);
template void add_column_sums(const float*, int64_t, int64_t, int64_t, float*, InstructionSet);
template void add_column_sums(const Bfloat16*, int64_t, int64_t, int64_t, float*, InstructionSet);

}  // namespace sluice::models
