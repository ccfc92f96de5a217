#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::nodes {

/// x within +-80, which float32 can exponentiate: beyond, the gradient is 0.
inline at::Tensor held_log_ratio(const at::Tensor& x) {
  constexpr double kLargest = 80;
  return x.clamp(-kLargest, kLargest);
}

/// exp(x) of that: beyond, the gradient is 0 rather than NaN.
inline at::Tensor exp_log_ratio(const at::Tensor& x) { return held_log_ratio(x).exp(); }

}  // namespace sluice::nodes
