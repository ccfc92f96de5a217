#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Clipped surrogate (Schulman et al. 2017, eq. 7): -min(r A, clamp(r, 1 - clip_low, 1 + clip_high) A) with r = exp(logprob -
/// old_logprob).
///
///   objective = { type = "ppo_clip", clip_low = 0.2, clip_high = 0.28, dual_clip = 3.0 }
///
/// With dual_clip = c > 1 the loss of an action of negative advantage is at most -c A (Ye et al. 2020, eq. 5); 0 turns that off.
/// And the parameters of every policy objective (policy_loss.h): with kl_coefficient it is the loss of GRPO (Shao et al. 2024,
/// eq. 3), with clip_high above clip_low and aggregation = "token_mean" that of DAPO (Yu et al. 2025, eq. 8), with a correction
/// decoupled PPO.
struct PpoClipParams : PolicyLossParams {
  engine::ScheduledNumber clip_low = 0.2;
  engine::ScheduledNumber clip_high = 0.2;
  engine::ScheduledNumber dual_clip = 0;
};

class PpoClip final : public PolicyObjective {
 public:
  static void describe(engine::Contract<PpoClipParams>& contract);

  explicit PpoClip(const PpoClipParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  PpoClipParams params_;
};

/// -min(r A, clamp(r, 1 - low, 1 + high) A) for ratios r[K] and advantages A[K], with the metrics clip_fraction_low and
/// clip_fraction_high.
Surrogate clipped_surrogate(const at::Tensor& ratio, const at::Tensor& advantages, double low, double high);

/// Declares those metrics.
template <class P>
void describe_clip_fractions(engine::Contract<P>& c) {
  c.metric("policy/clip_fraction_low", engine::Metric::kMean,
           "part of the actions whose ratio is below the clip range and does not pay any more");
  c.metric("policy/clip_fraction_high", engine::Metric::kMean, "part of the actions whose ratio is above it, likewise");
}

}  // namespace sluice::nodes
