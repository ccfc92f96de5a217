#pragma once

#include <ATen/core/Tensor.h>

#include "models/cuda/training_operators.h"

namespace sluice::models {

constexpr const char* kTurnSchema = "turn(Tensor x, Tensor turns, bool back, ScalarType dtype) -> Tensor";

/// x [T,N,D] with the first R numbers of each head turned as turns [T,R] float32 say (portable::rotated()), in the dtype;
/// `back`: the other way. One of the two dtypes is float32.
at::Tensor own_turn(const at::Tensor& x, const at::Tensor& turns, bool back, at::ScalarType dtype);

void offer_turn(torch::Library& library, const TrainingKernels& kernels);

}  // namespace sluice::models
