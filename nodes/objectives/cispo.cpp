#include "nodes/objectives/cispo.h"

#include "nodes/objectives/log_ratio.h"
#include "nodes/objectives/ppo_clip.h"

namespace sluice::nodes {

void Cispo::describe(engine::Contract<CispoParams>& c) {
  using P = CispoParams;
  c.type("cispo", "policy gradient weighed by the clipped probability ratio of each action");
  c.param("clip_low", &P::clip_low)
      .between(0, 1)
      .recorded_as("policy/clip_low")
      .doc("a weight is at least 1 - clip_low; 1: no lower bound");
  c.param("clip_high", &P::clip_high).at_least(0).recorded_as("policy/clip_high").doc("a weight is at most 1 + clip_high");
  describe_policy_loss(c);
  describe_clip_fractions(c);
}

Surrogate Cispo::surrogate(const PolicyTerms& terms) const {
  const double low = 1 - params_.clip_low.at(terms.iteration), high = 1 + params_.clip_high.at(terms.iteration);
  const at::Tensor ratio = exp_log_ratio(terms.log_ratio()).detach();  // [K]
  return {.losses = ratio.clamp(low, high).mul(terms.advantages).neg().mul(terms.logprobs),
          .metrics = {mean_metric("policy/clip_fraction_low", ratio.lt(low)),
                      mean_metric("policy/clip_fraction_high", ratio.gt(high))}};
}

}  // namespace sluice::nodes
