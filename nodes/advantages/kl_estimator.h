#pragma once

#include <array>
#include <utility>

namespace sluice::nodes {

/// Estimators of KL(policy || reference) from one sampled action (Schulman 2020, "Approximating KL divergence").
/// With d = log policy - log reference of the action:
enum class KlEstimator {
  kK1,   // d                  unbiased, may be negative
  kK2,   // d^2 / 2            biased, low variance
  kK3,   // exp(-d) - 1 + d    unbiased, never negative
  kAbs,  // |d|
};

constexpr auto enum_names(KlEstimator) {
  return std::array{std::pair{KlEstimator::kK1, "k1"}, std::pair{KlEstimator::kK2, "k2"}, std::pair{KlEstimator::kK3, "k3"},
                    std::pair{KlEstimator::kAbs, "abs"}};
}

/// In nats, not clamped. NaN when either is NaN.
double estimate_kl(KlEstimator estimator, double logprob, double reference_logprob);

}  // namespace sluice::nodes
