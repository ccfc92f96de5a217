#include "nodes/objectives/gmpo.h"

#include "nodes/objectives/log_ratio.h"
#include "nodes/objectives/ppo_clip.h"

namespace sluice::nodes {

void Gmpo::describe(engine::Contract<GmpoParams>& c) {
  using P = GmpoParams;
  c.type("gmpo", "surrogate on the geometric mean of the clipped probability ratios of each sample");
  c.param("clip_low", &P::clip_low)
      .at_least(0)
      .recorded_as("policy/clip_low")
      .doc("the log ratio of an action of negative advantage is at least -clip_low");
  c.param("clip_high", &P::clip_high)
      .at_least(0)
      .recorded_as("policy/clip_high")
      .doc("the log ratio of an action of positive advantage is at most clip_high");
  describe_policy_loss(c);
  describe_clip_fractions(c);
}

Surrogate Gmpo::surrogate(const PolicyTerms& terms) const {
  const double low = -params_.clip_low.at(terms.iteration), high = params_.clip_high.at(terms.iteration);
  const at::Tensor log_ratio = terms.log_ratio();   // [K]
  const at::Tensor rises = terms.advantages.gt(0);  // else the advantage leads down
  const at::Tensor clipped = log_ratio.clamp_max(high).where(rises, log_ratio.clamp_min(low));
  const at::Tensor ratio = exp_log_ratio(terms.kept.mean_by_sample(clipped));  // [S]
  return {.losses = terms.kept.to_actions(ratio).mul(terms.advantages).neg(),
          .metrics = {mean_metric("policy/clip_fraction_low", log_ratio.lt(low).logical_and(rises.logical_not())),
                      mean_metric("policy/clip_fraction_high", log_ratio.gt(high).logical_and(rises))}};
}

}  // namespace sluice::nodes
