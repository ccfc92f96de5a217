#pragma once

#include "engine/contract/contract.h"
#include "nodes/objectives/preference/preference_objective.h"

namespace sluice::nodes {

/// Identity preference optimisation (Azar et al. 2023, eq. 17): (h - 1 / (2 beta))^2, where h = l(chosen) - l(rejected) and l is
/// the log ratio log policy - log reference of a sample.
///
///   objective = { type = "ipo", beta = 0.1 }
///
/// l is the mean over the actions of a sample. The paper writes the ratio of whole samples; the mean is what TRL computes, whose
/// authors had it confirmed by those of the paper, and keeps beta comparable between samples of different lengths. The reward of
/// a sample is beta l.
struct IpoParams {
  engine::ScheduledNumber beta = 0.1;
};

class Ipo final : public PreferenceObjective {
 public:
  static void describe(engine::Contract<IpoParams>& contract);

  explicit Ipo(const IpoParams& params) : params_(params) {}

  bool reads_reference() const override { return true; }
  PreferenceTerms compute(const PreferenceInputs& inputs) const override;

 private:
  IpoParams params_;
};

}  // namespace sluice::nodes
