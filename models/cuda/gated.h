#pragma once

#include <ATen/core/Tensor.h>

#include "models/config/config.h"
#include "models/cuda/training_operators.h"

#include "models/cuda/training_kernels.h"

namespace sluice::models {

/// What kernels call an activation.
GateKind gate_kind_of(Activation activation);

constexpr const char* kGatedSchema = "gated(Tensor gate, Tensor up, int kind, ScalarType dtype) -> Tensor";
constexpr const char* kGatedBackwardSchema =
    "gated_backward(Tensor grad, Tensor gate, Tensor up, int kind, ScalarType dtype) -> (Tensor, Tensor)";

/// activation(gate) * up of float32 tensors of one shape, in the dtype.
at::Tensor own_gated(Activation activation, const at::Tensor& gate, const at::Tensor& up, at::ScalarType dtype);

/// Gradients of gate and up in the dtype, from that of the result: bfloat16 only where that is.
struct GatedGradients {
  at::Tensor of_gate, of_up;
};
GatedGradients own_gated_backward(Activation activation, const at::Tensor& grad, const at::Tensor& gate, const at::Tensor& up,
                                  at::ScalarType dtype);

void offer_gated(torch::Library& library, const TrainingKernels& kernels);

}  // namespace sluice::models
