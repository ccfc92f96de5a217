#include "nodes/objectives/preference/simpo.h"

#include <ATen/ops/log_sigmoid.h>

namespace sluice::nodes {

void Simpo::describe(engine::Contract<SimpoParams>& c) {
  using P = SimpoParams;
  c.type("simpo", "preference optimisation on mean log-probabilities, without a reference");
  c.param("beta", &P::beta).above(0).recorded_as("preference/beta").doc("of the mean log-probability of an action");
  c.param("gamma", &P::gamma).at_least(0).doc("by how much the chosen sample's reward is to exceed the other's");
}

PreferenceTerms Simpo::compute(const PreferenceInputs& inputs) const {
  const double beta = params_.beta.at(inputs.iteration);
  const at::Tensor chosen = inputs.chosen.policy.div(inputs.chosen.lengths).mul(beta);        // [P]
  const at::Tensor rejected = inputs.rejected.policy.div(inputs.rejected.lengths).mul(beta);  // [P]
  return {.losses = at::log_sigmoid(chosen.sub(rejected).sub(params_.gamma)).neg(),
          .chosen_rewards = chosen.detach(),
          .rejected_rewards = rejected.detach()};
}

}  // namespace sluice::nodes
