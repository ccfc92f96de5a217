#include "nodes/objectives/preference/ipo.h"

namespace sluice::nodes {
namespace {

at::Tensor mean_log_ratio(const SequenceLogprobs& samples) { return samples.policy.sub(samples.reference).div(samples.lengths); }

}  // namespace

void Ipo::describe(engine::Contract<IpoParams>& c) {
  c.type("ipo", "identity preference optimisation: the difference of the mean log ratios is drawn to 1 / (2 beta)");
  c.param("beta", &IpoParams::beta)
      .above(0)
      .doc("strength of the regularisation (tau of the paper); the larger, the closer the policy stays to the reference");
}

PreferenceTerms Ipo::compute(const PreferenceInputs& inputs) const {
  const at::Tensor chosen = mean_log_ratio(inputs.chosen), rejected = mean_log_ratio(inputs.rejected);  // [P]
  return {.losses = chosen.sub(rejected).sub(1 / (2 * params_.beta)).square(),
          .chosen_rewards = chosen.detach().mul(params_.beta),
          .rejected_rewards = rejected.detach().mul(params_.beta)};
}

}  // namespace sluice::nodes
