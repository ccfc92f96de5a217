#include "nodes/objectives/ppo_clip.h"

#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

void PpoClip::describe(engine::Contract<PpoClipParams>& c) {
  using P = PpoClipParams;
  c.type("ppo_clip", "clipped surrogate of PPO on the probability ratio of each action");
  c.param("clip_low", &P::clip_low).between(0, 1).recorded_as("policy/clip_low").doc("the ratio pays down to 1 - clip_low");
  c.param("clip_high", &P::clip_high).at_least(0).recorded_as("policy/clip_high").doc("the ratio pays up to 1 + clip_high");
  c.param("dual_clip", &P::dual_clip)
      .at_least(0)
      .recorded_as("policy/dual_clip")
      .doc("an action of negative advantage loses at most dual_clip times it; 0: no such bound");
  describe_policy_loss(c);
  describe_clip_fractions(c);
  c.metric("policy/dual_clip_fraction", engine::Metric::kMean, "part of the actions that dual_clip bounds");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.dual_clip.highest() > 0 && params.dual_clip.lowest() <= 1) {
      findings.error("dual_clip", "dual_clip must be above 1, or 0 for none", "usual is 3.0");
    }
  });
}

Surrogate clipped_surrogate(const at::Tensor& ratio, const at::Tensor& advantages, double low, double high) {
  const at::Tensor slope = advantages.neg();  // [K] loss per unit of ratio
  const at::Tensor free = slope.mul(ratio);
  const at::Tensor clipped = slope.mul(ratio.clamp(1 - low, 1 + high));
  const at::Tensor binds = clipped.gt(free);
  return {.losses = free.maximum(clipped),
          .metrics = {mean_metric("policy/clip_fraction_low", binds.logical_and(ratio.lt(1 - low))),
                      mean_metric("policy/clip_fraction_high", binds.logical_and(ratio.gt(1 + high)))}};
}

Surrogate PpoClip::surrogate(const PolicyTerms& terms) const {
  Surrogate result = clipped_surrogate(exp_log_ratio(terms.log_ratio()), terms.advantages, params_.clip_low.at(terms.iteration),
                                       params_.clip_high.at(terms.iteration));
  if (const double most = params_.dual_clip.at(terms.iteration); most > 0) {
    const at::Tensor bound = terms.advantages.mul(-most);
    const at::Tensor negative = terms.advantages.lt(0);
    result.metrics.push_back(mean_metric("policy/dual_clip_fraction", negative.logical_and(result.losses.gt(bound))));
    result.losses = result.losses.minimum(bound).where(negative, result.losses);
  }
  return result;
}

}  // namespace sluice::nodes
