#include "nodes/objectives/sapo.h"

#include <ATen/ops/full_like.h>

#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

void Sapo::describe(engine::Contract<SapoParams>& c) {
  using P = SapoParams;
  c.type("sapo", "surrogate on the probability ratio of each action after a soft gate");
  c.param("tau_positive", &P::tau_positive).above(0).doc("how fast the gate closes for actions of positive advantage");
  c.param("tau_negative", &P::tau_negative).above(0).doc("the same for the others");
  describe_policy_loss(c);
}

Surrogate Sapo::surrogate(const PolicyTerms& terms) const {
  const at::Tensor ratio = exp_log_ratio(terms.log_ratio());  // [K]
  const at::Tensor tau =
      at::full_like(terms.advantages, params_.tau_negative).masked_fill(terms.advantages.gt(0), params_.tau_positive);
  const at::Tensor gate = ratio.sub(1).mul(tau).sigmoid().mul(4).div(tau);
  return {.losses = gate.mul(terms.advantages).neg(), .metrics = {}};
}

}  // namespace sluice::nodes
