#include "nodes/objectives/ppo_clip.h"

namespace sluice::nodes {

void PpoClip::describe(engine::Contract<PpoClipParams>& c) {
  using P = PpoClipParams;
  c.type("ppo_clip", "clipped surrogate of PPO on the probability ratio of each action");
  c.param("clip_low", &P::clip_low).between(0, 1).doc("the ratio pays down to 1 - clip_low");
  c.param("clip_high", &P::clip_high).at_least(0).doc("the ratio pays up to 1 + clip_high");
  c.param("dual_clip", &P::dual_clip)
      .at_least(0)
      .doc("an action of negative advantage loses at most dual_clip times it; 0: no such bound");
  c.metric("ratio_mean", "mean over the actions of new over old probability");
  c.metric("ratio_max", "largest such ratio");
  c.metric("clip_fraction", "part of the actions whose ratio is clipped");
  c.metric("dual_clip_fraction", "part of the actions that dual_clip bounds");
  c.metric("policy_kl_mean", "divergence of the trained weights from those that sampled (k3)");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.dual_clip > 0 && params.dual_clip <= 1) {
      findings.error("dual_clip", "dual_clip must be above 1, or 0 for none", "usual is 3.0");
    }
  });
}

ObjectiveResult PpoClip::compute(const ObjectiveInputs& inputs) const {
  constexpr double kLargestLogRatio = 80;
  if (inputs.logprobs.numel() == 0) return {.loss_sum = inputs.logprobs.sum(), .count = 0, .metrics = {}};

  const at::Tensor slope = inputs.advantages.neg();  // [A] loss per unit of ratio
  const at::Tensor log_ratio = inputs.logprobs.sub(inputs.old_logprobs).clamp(-kLargestLogRatio, kLargestLogRatio);  // [A]
  const at::Tensor ratio = log_ratio.exp();                                                                          // [A]
  const at::Tensor free = slope.mul(ratio);
  const at::Tensor clipped = slope.mul(ratio.clamp(1 - params_.clip_low, 1 + params_.clip_high));
  at::Tensor losses = free.maximum(clipped);  // [A]

  std::vector<ObjectiveMetric> metrics;
  metrics.push_back(mean_metric("ratio_mean", ratio));
  metrics.push_back({.name = "ratio_max", .kind = ObjectiveMetric::Kind::kMaximum, .value = ratio.max().item().toDouble()});
  metrics.push_back(mean_metric("clip_fraction", clipped.gt(free)));
  metrics.push_back(mean_metric("policy_kl_mean", ratio.sub(1).sub(log_ratio)));  // k3, d = -log_ratio

  if (params_.dual_clip > 0) {
    const at::Tensor bound = slope.mul(params_.dual_clip);
    const at::Tensor negative = inputs.advantages.lt(0);
    metrics.push_back(mean_metric("dual_clip_fraction", negative.logical_and(losses.gt(bound))));
    losses = losses.minimum(bound).where(negative, losses);
  }
  return {.loss_sum = losses.sum(), .count = static_cast<double>(losses.numel()), .metrics = std::move(metrics)};
}

}  // namespace sluice::nodes
