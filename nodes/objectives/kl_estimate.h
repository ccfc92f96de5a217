#pragma once

#include <ATen/core/Tensor.h>

#include "nodes/statistics/kl_estimator.h"

namespace sluice::nodes {

/// estimate_kl (kl_estimator.h) of many actions: log_ratio [K] is log of the policy that sampled less log of the other. Not
/// clamped, but for the exponential of k3 (log_ratio.h). Differentiable.
at::Tensor kl_estimates(KlEstimator estimator, const at::Tensor& log_ratio);

}  // namespace sluice::nodes
