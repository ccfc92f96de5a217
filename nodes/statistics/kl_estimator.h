#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "engine/contract/contract.h"

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

/// What every node that estimates a KL has beside its own parameters, which derive from it:
///
///   estimator = "k3"       # the name is the node's; "k1", "k2", "abs"
///   clamp_input = 20.0     # d is held within +-20 before the estimator; unset: not at all
///   clamp_output = 10.0    # the estimate is held within +-10; unset: not at all
///
/// NeMo-RL clamps at 20 and 10; verl and SkyRL do so for k3 alone, OpenRLHF only the estimate.
struct KlParams {
  KlEstimator kl_estimator = KlEstimator::kK1;
  std::optional<double> clamp_input;
  std::optional<double> clamp_output;

  double estimate(double logprob, double reference_logprob) const;
};

template <class P>
void describe_kl(engine::Contract<P>& c, const std::string& estimator_name) {
  c.param(estimator_name, &P::kl_estimator)
      .doc("k1: log ratio, k2: half its square, k3: exp(-k1) - 1 + k1, abs: its absolute value");
  c.param("clamp_input", &P::clamp_input).above(0).doc("bounds the log ratio before the estimator; unset: not at all");
  c.param("clamp_output", &P::clamp_output).above(0).doc("bounds the estimate; unset: not at all");
}

}  // namespace sluice::nodes
