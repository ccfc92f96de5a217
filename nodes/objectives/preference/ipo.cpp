#include "nodes/objectives/preference/ipo.h"

namespace sluice::nodes {
namespace {

at::Tensor mean_log_ratio(const SequenceLogprobs& samples) { return samples.policy.sub(samples.reference).div(samples.lengths); }

}  // namespace

void Ipo::describe(engine::Contract<IpoParams>& c) {
  c.type("ipo", "identity preference optimisation: the difference of the mean log ratios is drawn to 1 / (2 beta)");
  c.param("beta", &IpoParams::beta)
      .above(0)
      .recorded_as("preference/beta")
      .doc("strength of the regularisation (tau of the paper); the larger, the closer the policy stays to the reference");
}

PreferenceTerms Ipo::compute(const PreferenceInputs& inputs) const {
  const double beta = params_.beta.at(inputs.iteration);
  const at::Tensor chosen = mean_log_ratio(inputs.chosen), rejected = mean_log_ratio(inputs.rejected);  // [P]
  return {.losses = chosen.sub(rejected).sub(1 / (2 * beta)).square(),
          .chosen_rewards = chosen.detach().mul(beta),
          .rejected_rewards = rejected.detach().mul(beta)};
}

}  // namespace sluice::nodes
