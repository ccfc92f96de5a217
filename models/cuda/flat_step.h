#pragma once

#include <ATen/core/Tensor.h>

#include "models/cuda/training_operators.h"
#include "models/kernels/adamw_kernel.h"

namespace sluice::models {

constexpr const char* kAdamWStepSchema =
    "adamw_step(Tensor(a!) weights, Tensor(b!) gradients, Tensor(c!) first_moments, Tensor(d!) second_moments, "
    "Tensor(e!)? written, float gradient_scale, float new_first, float new_second, float kept, float step_size, float "
    "root_scale, float epsilon) -> ()";
constexpr const char* kSumOfSquaresSchema = "sum_of_squares(Tensor values) -> Tensor";

/// adamw_step() of adamw_kernel.h of contiguous float32 tensors of one size. `written`, float32 or bfloat16 of that size, becomes
/// the weights, rounded; undefined: nothing does.
void own_adamw_step(const at::Tensor& weights, const at::Tensor& gradients, const at::Tensor& first_moments,
                    const at::Tensor& second_moments, const at::Tensor& written, const AdamWFactors& factors);

/// [] float64, of contiguous float32 values, in an order that their number decides.
at::Tensor own_sum_of_squares(const at::Tensor& values);

void offer_flat_step(torch::Library& library, const TrainingKernels& kernels);

}  // namespace sluice::models
