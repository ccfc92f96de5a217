#pragma once

#include <ATen/core/Tensor.h>

#include "models/cuda/training_operators.h"

namespace sluice::models {

constexpr const char* kRotarySchema = "rotary(Tensor x, Tensor angles, bool back, ScalarType dtype) -> Tensor";

/// x [T,N,D] with the first R numbers of each head rotated as angles [T,R] float32 say (portable::rotated()), in the dtype;
/// `back`: the other way. One of the two dtypes is float32.
at::Tensor own_rotary(const at::Tensor& x, const at::Tensor& angles, bool back, at::ScalarType dtype);

void offer_rotary(torch::Library& library, const TrainingKernels& kernels);

}  // namespace sluice::models
