#include "nodes/objectives/preference/dpo.h"

#include <ATen/ops/log_sigmoid.h>

namespace sluice::nodes {

void Dpo::describe(engine::Contract<DpoParams>& c) {
  using P = DpoParams;
  c.type("dpo", "direct preference optimisation: a logistic loss on the difference of the implicit rewards");
  c.param("beta", &P::beta)
      .above(0)
      .recorded_as("preference/beta")
      .doc("of the log ratio to the reference; the larger, the closer the policy stays to it");
  c.param("label_smoothing", &P::label_smoothing).between(0, 0.499).doc("share of the pairs whose label is taken to be wrong");
  c.param("noise", &P::noise).doc("conservative: the loss expected under such labels, robust: an unbiased one of right labels");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.label_smoothing == 0 && findings.changed("noise")) {
      findings.without_effect("noise", "noise has no effect while label_smoothing is 0", "set label_smoothing, or remove noise");
    }
  });
}

PreferenceTerms Dpo::compute(const PreferenceInputs& inputs) const {
  const double beta = params_.beta.at(inputs.iteration);
  const double flipped = params_.label_smoothing;
  const at::Tensor chosen = inputs.chosen.policy.sub(inputs.chosen.reference).mul(beta);        // [P]
  const at::Tensor rejected = inputs.rejected.policy.sub(inputs.rejected.reference).mul(beta);  // [P]
  const at::Tensor margin = chosen.sub(rejected);
  const at::Tensor of_label = at::log_sigmoid(margin).neg(), of_flipped = at::log_sigmoid(margin.neg()).neg();

  const at::Tensor losses = params_.noise == LabelNoise::kConservative
                                ? of_label.mul(1 - flipped).add(of_flipped.mul(flipped))
                                : of_label.mul(1 - flipped).sub(of_flipped.mul(flipped)).div(1 - 2 * flipped);
  return {.losses = losses, .chosen_rewards = chosen.detach(), .rejected_rewards = rejected.detach()};
}

}  // namespace sluice::nodes
