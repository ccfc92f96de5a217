#pragma once

#include "engine/contract.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// Clipped surrogate (Schulman et al. 2017, eq. 7): -min(r A, clamp(r, 1 - clip_low, 1 + clip_high) A) with r = exp(logprob -
/// old_logprob).
///
///   objective = { type = "ppo_clip", clip_low = 0.2, clip_high = 0.28, dual_clip = 3.0 }
///
/// With dual_clip = c > 1 the loss of an action of negative advantage is at most -c A (Ye et al. 2020, eq. 5); 0 turns that off.
/// log r is held within +-80, which float32 can exponentiate: beyond, the gradient is 0 rather than NaN.
struct PpoClipParams {
  double clip_low = 0.2;
  double clip_high = 0.2;
  double dual_clip = 0;
};

class PpoClip final : public Objective {
 public:
  static void describe(engine::Contract<PpoClipParams>& contract);

  explicit PpoClip(const PpoClipParams& params) : params_(params) {}

  bool reads_old_logprobs() const override { return true; }
  ObjectiveResult compute(const ObjectiveInputs& inputs) const override;

 private:
  PpoClipParams params_;
};

}  // namespace sluice::nodes
