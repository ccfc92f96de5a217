#pragma once

#include "engine/contract/contract.h"
#include "nodes/objectives/preference/preference_objective.h"

namespace sluice::nodes {

/// Simple preference optimisation (Meng et al. 2024, eq. 6), which needs no reference: -log sigmoid(r(chosen) - r(rejected) -
/// gamma) with r = beta times the mean log-probability of an action of the sample.
///
///   objective = { type = "simpo", beta = 2.0, gamma = 1.0 }
///
/// The reward of a sample is r.
struct SimpoParams {
  engine::ScheduledNumber beta = 2.0;
  double gamma = 1.0;
};

class Simpo final : public PreferenceObjective {
 public:
  static void describe(engine::Contract<SimpoParams>& contract);

  explicit Simpo(const SimpoParams& params) : params_(params) {}

  bool reads_reference() const override { return false; }
  PreferenceTerms compute(const PreferenceInputs& inputs) const override;

 private:
  SimpoParams params_;
};

}  // namespace sluice::nodes
