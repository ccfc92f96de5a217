#include "models/kernels/training_kernels.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

namespace sluice::models {
namespace {

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/kernels/training_kernels.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/kernels/training_kernels.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/kernels/training_kernels.inc"
}  // namespace baseline

// Calls `run` with the kernels for the machine.
template <class Run>
void dispatch(Machine machine, const Run& run) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return run(v4::Kernels{});
    case Machine::kV3:
      return run(v3::Kernels{});
    case Machine::kBaseline:
      return run(baseline::Kernels{});
  }
}

}  // namespace

template <class Number>
void norm_forward(const NormRows<>& in, const NormStatistics& statistics, Number* out, Machine machine) {
  dispatch(machine, [&](auto kernels) { kernels.norm_forward(in, statistics, out); });
}

template <class In, class Grad, class Out>
void norm_backward(const NormRows<In>& in, const NormStatistics& statistics, const Grad* grad, Out* grad_x, bool add,
                   const NormWeightGradient& grad_weights, Machine machine) {
  dispatch(machine, [&](auto kernels) { kernels.norm_backward(in, statistics, grad, grad_x, add, grad_weights); });
}

template <class Number>
void activation_forward(Activation activation, const float* gate, const float* up, int64_t count, const Activated<Number>& to,
                        Machine machine) {
  dispatch(machine, [&](auto kernels) { kernels.activation_forward(activation, gate, up, count, to); });
}

template <class Number>
void activation_backward(Activation activation, Number* gate, std::type_identity_t<Number>* up, int64_t count, Number* grad,
                         Machine machine) {
  dispatch(machine, [&](auto kernels) { kernels.activation_backward(activation, gate, up, count, grad); });
}

template <class Number>
void turn_heads(const float* token, int64_t heads, int64_t head_dim, const float* angles, int64_t dims, Number* out,
                Machine machine) {
  dispatch(machine, [&](auto kernels) { kernels.turn_heads(token, heads, head_dim, angles, dims, out); });
}

template <class Number>
void add_column_sums(const Number* x, int64_t stride, int64_t rows, int64_t size, float* out, Machine machine) {
  dispatch(machine, [&](auto kernels) { kernels.add_column_sums(x, stride, rows, size, out); });
}

template void norm_forward(const NormRows<>&, const NormStatistics&, float*, Machine);
template void norm_forward(const NormRows<>&, const NormStatistics&, Bfloat16*, Machine);
template void norm_backward(const NormRows<>&, const NormStatistics&, const float*, float*, bool, const NormWeightGradient&,
                            Machine);
template void norm_backward(const NormRows<>&, const NormStatistics&, const float*, Bfloat16*, bool, const NormWeightGradient&,
                            Machine);
template void norm_backward(const NormRows<Bfloat16>&, const NormStatistics&, const Bfloat16*, Bfloat16*, bool,
                            const NormWeightGradient&, Machine);
template void activation_forward(Activation, const float*, const float*, int64_t, const Activated<float>&, Machine);
template void activation_forward(Activation, const float*, const float*, int64_t, const Activated<Bfloat16>&, Machine);
template void activation_backward(Activation, float*, float*, int64_t, float*, Machine);
template void activation_backward(Activation, Bfloat16*, Bfloat16*, int64_t, Bfloat16*, Machine);
template void turn_heads(const float*, int64_t, int64_t, const float*, int64_t, float*, Machine);
template void turn_heads(const float*, int64_t, int64_t, const float*, int64_t, Bfloat16*, Machine);
template void add_column_sums(const float*, int64_t, int64_t, int64_t, float*, Machine);
template void add_column_sums(const Bfloat16*, int64_t, int64_t, int64_t, float*, Machine);

}  // namespace sluice::models
