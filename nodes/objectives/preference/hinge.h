#pragma once

#include "engine/contract/contract.h"
#include "nodes/objectives/preference/preference_objective.h"

namespace sluice::nodes {

/// A hinge on the difference of the implicit rewards: max(0, 1 - (r(chosen) - r(rejected))) with r = beta (log policy - log
/// reference) of a whole sample. The margin loss of SLiC (Zhao et al. 2023) on the rewards of DPO (Liu et al. 2023, "Statistical
/// Rejection Sampling Improves Preference Optimization").
///
///   objective = { type = "hinge", beta = 0.1 }
///
/// A pair that is 1 / beta nats apart teaches nothing more. The reward of a sample is r.
struct HingeParams {
  engine::ScheduledNumber beta = 0.1;
};

class Hinge final : public PreferenceObjective {
 public:
  static void describe(engine::Contract<HingeParams>& contract);

  explicit Hinge(const HingeParams& params) : params_(params) {}

  bool reads_reference() const override { return true; }
  PreferenceTerms compute(const PreferenceInputs& inputs) const override;

 private:
  HingeParams params_;
};

}  // namespace sluice::nodes
