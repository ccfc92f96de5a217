#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/layers/weights.h"

namespace sluice::models {

/// How far two tensors are apart where they are farthest, in double precision, whatever devices and precisions they have.
inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kCPU).to(at::kDouble) - b.to(at::kCPU).to(at::kDouble)).abs().max().item<double>();
}

/// The norm of how `x` differs, as a share of that of what it should be.
inline double relative_distance(const at::Tensor& x, const at::Tensor& expected) {
  return (x - expected).norm().item<double>() / expected.norm().item<double>();
}

inline int64_t parameter_count(const Weights& weights) {
  int64_t count = 0;
  for (const auto& [name, tensor] : weights.named()) count += tensor.numel();
  return count;
}

}  // namespace sluice::models
