#pragma once

#include "engine/contract.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// Plain policy gradient (Williams 1992): -A logprob. Right only on-policy: one optimizer step an iteration, policy_lag 0.
///
///   objective = "reinforce"
struct ReinforceParams {};

class Reinforce final : public Objective {
 public:
  static void describe(engine::Contract<ReinforceParams>& contract);

  explicit Reinforce(const ReinforceParams&) {}

  bool reads_old_logprobs() const override { return false; }
  ObjectiveResult compute(const ObjectiveInputs& inputs) const override;
};

}  // namespace sluice::nodes
