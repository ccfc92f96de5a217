#include "models/kernels/training_kernels.h"

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

struct Kernels {
  decltype(&baseline::norm_forward) norm_forward;
  decltype(&baseline::norm_backward) norm_backward;
  decltype(&baseline::activation_forward) activation_forward;
  decltype(&baseline::activation_backward) activation_backward;
};

Kernels kernels_for(Machine machine) {
  switch (machine) {
    case Machine::kV4Bfloat16:
    case Machine::kV4:
      return {v4::norm_forward, v4::norm_backward, v4::activation_forward, v4::activation_backward};
    case Machine::kV3:
      return {v3::norm_forward, v3::norm_backward, v3::activation_forward, v3::activation_backward};
    case Machine::kBaseline:
      break;
  }
  return {baseline::norm_forward, baseline::norm_backward, baseline::activation_forward, baseline::activation_backward};
}

}  // namespace

void norm_forward(const NormRows& in, const NormStatistics& statistics, float* out, Machine machine) {
  kernels_for(machine).norm_forward(in, statistics, out);
}

void norm_backward(const NormRows& in, const NormStatistics& statistics, const float* grad, float* grad_x,
                   const NormWeightGradient& grad_weights, Machine machine) {
  kernels_for(machine).norm_backward(in, statistics, grad, grad_x, grad_weights);
}

void activation_forward(Activation activation, const float* gate, const float* up, int64_t count, float* out, Machine machine) {
  kernels_for(machine).activation_forward(activation, gate, up, count, out);
}

void activation_backward(Activation activation, const float* gate, const float* up, const float* grad, int64_t count,
                         float* grad_gate, float* grad_up, Machine machine) {
  kernels_for(machine).activation_backward(activation, gate, up, grad, count, grad_gate, grad_up);
}

}  // namespace sluice::models
