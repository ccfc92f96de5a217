#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Clipped importance-sampling weights (MiniMax 2025, "MiniMax-M1", eq. 4): -clamp(r, 1 - clip_low, 1 + clip_high) A logprob,
/// where the clamped ratio is a constant: every action keeps a gradient.
///
///   objective = { type = "cispo", clip_low = 0.2, clip_high = 0.28 }     # the paper bounds from above only: clip_low = 1
///
/// And the parameters of every policy objective (policy_loss.h).
struct CispoParams : PolicyLossParams {
  engine::ScheduledNumber clip_low = 0.2;
  engine::ScheduledNumber clip_high = 0.28;
};

class Cispo final : public PolicyObjective {
 public:
  static void describe(engine::Contract<CispoParams>& contract);

  explicit Cispo(const CispoParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  CispoParams params_;
};

}  // namespace sluice::nodes
