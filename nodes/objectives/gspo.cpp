#include "nodes/objectives/gspo.h"

#include "nodes/objectives/log_ratio.h"
#include "nodes/objectives/ppo_clip.h"

namespace sluice::nodes {

void Gspo::describe(engine::Contract<GspoParams>& c) {
  using P = GspoParams;
  c.type("gspo", "clipped surrogate on the probability ratio of each sample, per action");
  c.param("clip_low", &P::clip_low)
      .between(0, 1)
      .recorded_as("policy/clip_low")
      .doc("the ratio pays down to 1 - clip_low; 3e-4 in the paper");
  c.param("clip_high", &P::clip_high)
      .at_least(0)
      .recorded_as("policy/clip_high")
      .doc("the ratio pays up to 1 + clip_high; 4e-4 in the paper");
  describe_policy_loss(c);
  describe_clip_fractions(c);
}

Surrogate Gspo::surrogate(const PolicyTerms& terms) const {
  const at::Tensor ratio = exp_log_ratio(terms.kept.mean_by_sample(terms.log_ratio()));  // [S]
  return clipped_surrogate(terms.kept.to_actions(ratio), terms.advantages, params_.clip_low.at(terms.iteration),
                           params_.clip_high.at(terms.iteration));
}

}  // namespace sluice::nodes
