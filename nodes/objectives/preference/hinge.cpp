#include "nodes/objectives/preference/hinge.h"

#include <ATen/ops/relu.h>

namespace sluice::nodes {

void Hinge::describe(engine::Contract<HingeParams>& c) {
  c.type("hinge", "a hinge on the difference of the implicit rewards: pairs that are far enough apart teach nothing more");
  c.param("beta", &HingeParams::beta).above(0).recorded_as("preference/beta").doc("of the log ratio to the reference");
}

PreferenceTerms Hinge::compute(const PreferenceInputs& inputs) const {
  const double beta = params_.beta.at(inputs.iteration);
  const at::Tensor chosen = inputs.chosen.policy.sub(inputs.chosen.reference).mul(beta);        // [P]
  const at::Tensor rejected = inputs.rejected.policy.sub(inputs.rejected.reference).mul(beta);  // [P]
  return {.losses = at::relu(chosen.sub(rejected).neg().add(1)),
          .chosen_rewards = chosen.detach(),
          .rejected_rewards = rejected.detach()};
}

}  // namespace sluice::nodes
