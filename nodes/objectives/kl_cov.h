#pragma once

#include "nodes/objectives/covariances.h"
#include "nodes/objectives/key_search.h"
#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// KL-Cov (Cui et al. 2025, eq. 13 and 14): -r A, the policy gradient without a clip, and for the share `cov_share` of the step's
/// actions with the largest covariance (covariances.h) penalty_coefficient |log r| on top, as in the paper's listing and in verl.
///
///   objective = { type = "kl_cov", cov_share = 2e-4, penalty_coefficient = 1.0 }
///
/// At least one action of a step has the penalty; of actions with equal covariance all have it or none. And the parameters of
/// every policy objective (policy_loss.h).
struct KlCovParams : PolicyLossParams {
  double cov_share = 2e-4;
  engine::ScheduledNumber penalty_coefficient = 1.0;
};

class KlCov final : public PolicyObjective {
 public:
  static void describe(engine::Contract<KlCovParams>& contract);

  explicit KlCov(const KlCovParams& params) : PolicyObjective(params), params_(params) {}

  int looks() const override { return 1 + kSearchLooks; }
  std::vector<double> find(int look, const std::vector<double>& found, const StepSums& of_all) const override;

 private:
  void look(int look, const PolicyTerms& terms, StepSums& sums) const override;
  Surrogate surrogate(const PolicyTerms& terms) const override;

  KlCovParams params_;
};

}  // namespace sluice::nodes
