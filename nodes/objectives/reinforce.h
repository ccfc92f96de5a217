#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Plain policy gradient (Williams 1992): -A logprob. Without a correction it is right only on-policy: one optimizer step an
/// iteration, policy_lag 0.
///
///   objective = "reinforce"
///
/// And the parameters of every policy objective (policy_loss.h).
struct ReinforceParams : PolicyLossParams {};

class Reinforce final : public PolicyObjective {
 public:
  static void describe(engine::Contract<ReinforceParams>& contract);

  explicit Reinforce(const ReinforceParams& params) : PolicyObjective(params) {}

 private:
  bool takes_ratio() const override { return false; }
  Surrogate surrogate(const PolicyTerms& terms) const override;
};

}  // namespace sluice::nodes
