#pragma once

#include "nodes/objectives/key_search.h"
#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Second-moment trust policy optimisation (Zheng et al. 2025, "Prosperity before Collapse", algorithm 1 and eq. 5): -M r A, the
/// policy gradient without a clip, where M leaves actions out of the gradient: of those that move away from the old policy
/// (positive advantage and r > 1, or negative and r < 1) the ones with the largest (log r)^2, until the mean of (log r)^2 over
/// the rest of those in the whole optimizer step is at most m2_threshold.
///
///   objective = { type = "m2po", m2_threshold = 0.04 }
///
/// What is left out still counts in the mean. Of actions with equal (log r)^2 all are left out or none. How much an action counts
/// by the mask has no part in the choice, as long as it is not 0. And the parameters of every policy objective (policy_loss.h).
struct M2poParams : PolicyLossParams {
  double m2_threshold = 0.04;
};

class M2po final : public PolicyObjective {
 public:
  static void describe(engine::Contract<M2poParams>& contract);

  explicit M2po(const M2poParams& params) : PolicyObjective(params), params_(params) {}

  int looks() const override { return kSearchLooks; }
  std::vector<double> find(int look, const std::vector<double>& found, const StepSums& of_all) const override;

 private:
  void look(int look, const PolicyTerms& terms, StepSums& sums) const override;
  Surrogate surrogate(const PolicyTerms& terms) const override;

  M2poParams params_;
};

}  // namespace sluice::nodes
