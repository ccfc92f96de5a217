#pragma once

#include <ATen/core/Tensor.h>

#include "models/cuda/training_operators.h"

namespace sluice::models {

constexpr const char* kRmsNormSchema =
    "rms_norm(Tensor x, Tensor weight, float eps, bool from_one, ScalarType dtype) -> (Tensor, Tensor)";
constexpr const char* kRmsNormBackwardSchema =
    "rms_norm_backward(Tensor grad, Tensor x, Tensor weight, Tensor inverses, bool from_one, bool of_x, bool of_weight) -> "
    "(Tensor, Tensor)";

/// x [..., H] float32 over the root of its mean square, times weight [H] float32, or 1 + weight with from_one.
struct RmsNormed {
  at::Tensor out;       // like x, in the dtype
  at::Tensor inverses;  // [rows] of the roots, for the backward
};
RmsNormed own_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, bool from_one, at::ScalarType dtype);

/// Gradients, float32, from that of `out`; what is not wanted is undefined or anything.
struct RmsNormGradients {
  at::Tensor of_x, of_weight;
};
RmsNormGradients own_rms_norm_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& weight,
                                       const at::Tensor& inverses, bool from_one, bool wants_x, bool wants_weight);

void offer_rms_norm(torch::Library& library, const TrainingKernels& kernels);

}  // namespace sluice::models
