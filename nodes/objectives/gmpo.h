#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Geometric-mean policy optimisation (Zhao et al. 2025, arXiv 2507.20673): the log ratio of each action is clipped, where it
/// went too far the way that its advantage leads, and the clipped ones are averaged over the sample before they become a ratio:
///
///   -A exp(mean over the actions of c)    c = min(logprob - old_logprob, clip_high) where A > 0, else max(..., -clip_low)
///
///   objective = { type = "gmpo", clip_low = 0.4, clip_high = 0.4 }
///
/// The clip is of logarithms: ratios from exp(-0.4) = 0.67 to exp(0.4) = 1.49 pay. gspo clips after the mean, by sample. And the
/// parameters of every policy objective (policy_loss.h), of which aggregation is sample_mean by default, as in the paper.
struct GmpoParams : PolicyLossParams {
  GmpoParams() { aggregation = Aggregation::kSampleMean; }

  engine::ScheduledNumber clip_low = 0.4;
  engine::ScheduledNumber clip_high = 0.4;
};

class Gmpo final : public PolicyObjective {
 public:
  static void describe(engine::Contract<GmpoParams>& contract);

  explicit Gmpo(const GmpoParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  GmpoParams params_;
};

}  // namespace sluice::nodes
