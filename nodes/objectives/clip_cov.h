#pragma once

#include "nodes/objectives/covariances.h"
#include "nodes/objectives/key_search.h"
#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Clip-Cov (Cui et al. 2025, eq. 11 and 12): the clipped surrogate of ppo_clip, without the gradient of some actions of large
/// covariance (covariances.h): of those between cov_low and cov_high as many as are the share `cov_share` of all actions of the
/// step, drawn at random.
///
///   objective = { type = "clip_cov", cov_share = 2e-4, cov_low = 1.0, cov_high = 5.0, clip_low = 0.2, clip_high = 0.2 }
///
/// As in verl, actions that the clip stops are not among them, and at least one is drawn where there is any. What is drawn still
/// counts in the mean. An action's draw depends on its place in its sample, on the sample, the epoch, the iteration and the seed
/// of the run alone. And the parameters of every policy objective (policy_loss.h).
struct ClipCovParams : PolicyLossParams {
  double cov_share = 2e-4;
  double cov_low = 1.0;
  double cov_high = 5.0;
  engine::ScheduledNumber clip_low = 0.2;
  engine::ScheduledNumber clip_high = 0.2;
};

class ClipCov final : public PolicyObjective {
 public:
  static void describe(engine::Contract<ClipCovParams>& contract);

  explicit ClipCov(const ClipCovParams& params) : PolicyObjective(params), params_(params) {}

  int looks() const override { return 1 + kSearchLooks; }
  std::vector<double> find(int look, const std::vector<double>& found, const StepSums& of_all) const override;

 private:
  bool takes_draws() const override { return true; }
  void look(int look, const PolicyTerms& terms, StepSums& sums) const override;
  Surrogate surrogate(const PolicyTerms& terms) const override;

  Surrogate clipped(const PolicyTerms& terms) const;
  at::Tensor candidates(const PolicyTerms& terms, const at::Tensor& covariances) const;  // [K] bool

  ClipCovParams params_;
};

}  // namespace sluice::nodes
