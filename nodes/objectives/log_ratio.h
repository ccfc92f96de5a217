#pragma once

#include <ATen/core/Tensor.h>

namespace sluice::nodes {

/// exp(x) with x held within +-80, which float32 can exponentiate: beyond, the gradient is 0 rather than NaN.
inline at::Tensor exp_log_ratio(const at::Tensor& x) {
  constexpr double kLargest = 80;
  return x.clamp(-kLargest, kLargest).exp();
}

}  // namespace sluice::nodes
