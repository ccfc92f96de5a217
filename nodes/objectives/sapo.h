#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Soft adaptive policy optimisation (Gao et al. 2025, eq. 6): -f(r) A with f(r) = 4 / tau * sigmoid(tau (r - 1)), a soft gate in
/// place of the clip; tau is tau_positive for actions of positive advantage, else tau_negative. At r = 1 its slope is that of r.
///
///   objective = { type = "sapo", tau_positive = 1.0, tau_negative = 1.05 }
///
/// And the parameters of every policy objective (policy_loss.h), of which aggregation is sample_mean by default, as in the paper.
struct SapoParams : PolicyLossParams {
  SapoParams() { aggregation = Aggregation::kSampleMean; }

  double tau_positive = 1.0;
  double tau_negative = 1.05;
};

class Sapo final : public PolicyObjective {
 public:
  static void describe(engine::Contract<SapoParams>& contract);

  explicit Sapo(const SapoParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  SapoParams params_;
};

}  // namespace sluice::nodes
