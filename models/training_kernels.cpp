#include "models/training_kernels.h"

#include <cmath>
#include <cstring>

namespace sluice::models {
namespace {

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
namespace v4 {
constexpr int kLanes = 16;
#include "models/training_kernels.inc"
}  // namespace v4
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace v3 {
constexpr int kLanes = 8;
#include "models/training_kernels.inc"
}  // namespace v3
#pragma GCC pop_options

namespace baseline {
constexpr int kLanes = 4;
#include "models/training_kernels.inc"
}  // namespace baseline

}  // namespace

void rms_norm_forward(const RmsNormRows& in, float eps, float* out, float* inverse, Machine machine) {
  switch (machine) {
    case Machine::kV4:
      return v4::rms_norm_forward(in, eps, out, inverse);
    case Machine::kV3:
      return v3::rms_norm_forward(in, eps, out, inverse);
    case Machine::kBaseline:
      return baseline::rms_norm_forward(in, eps, out, inverse);
  }
}

void rms_norm_backward(const RmsNormRows& in, const float* inverse, const float* grad, float* grad_x, float* grad_weight,
                       Machine machine) {
  switch (machine) {
    case Machine::kV4:
      return v4::rms_norm_backward(in, inverse, grad, grad_x, grad_weight);
    case Machine::kV3:
      return v3::rms_norm_backward(in, inverse, grad, grad_x, grad_weight);
    case Machine::kBaseline:
      return baseline::rms_norm_backward(in, inverse, grad, grad_x, grad_weight);
  }
}

void swiglu_forward(const float* gate, const float* up, int64_t count, float* out, Machine machine) {
  switch (machine) {
    case Machine::kV4:
      return v4::swiglu_forward(gate, up, count, out);
    case Machine::kV3:
      return v3::swiglu_forward(gate, up, count, out);
    case Machine::kBaseline:
      return baseline::swiglu_forward(gate, up, count, out);
  }
}

void swiglu_backward(const float* gate, const float* up, const float* grad, int64_t count, float* grad_gate, float* grad_up,
                     Machine machine) {
  switch (machine) {
    case Machine::kV4:
      return v4::swiglu_backward(gate, up, grad, count, grad_gate, grad_up);
    case Machine::kV3:
      return v3::swiglu_backward(gate, up, grad, count, grad_gate, grad_up);
    case Machine::kBaseline:
      return baseline::swiglu_backward(gate, up, grad, count, grad_gate, grad_up);
  }
}

}  // namespace sluice::models
