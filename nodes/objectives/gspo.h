#pragma once

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// Group sequence policy optimisation (Zheng et al. 2025, eq. 5 and 7): the clipped surrogate on one ratio for each sample, s =
/// exp(mean over its actions of logprob - old_logprob), which all of its actions share.
///
///   objective = { type = "gspo", clip_low = 3e-4, clip_high = 4e-4 }     # the paper's; a ratio of means stays near 1
///
/// And the parameters of every policy objective (policy_loss.h), of which aggregation is sample_mean by default, as in the paper.
struct GspoParams : PolicyLossParams {
  GspoParams() { aggregation = Aggregation::kSampleMean; }

  engine::ScheduledNumber clip_low = 0.2;
  engine::ScheduledNumber clip_high = 0.2;
};

class Gspo final : public PolicyObjective {
 public:
  static void describe(engine::Contract<GspoParams>& contract);

  explicit Gspo(const GspoParams& params) : PolicyObjective(params), params_(params) {}

 private:
  Surrogate surrogate(const PolicyTerms& terms) const override;

  GspoParams params_;
};

}  // namespace sluice::nodes
