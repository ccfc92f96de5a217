#include "nodes/objectives/reinforce.h"

namespace sluice::nodes {

void Reinforce::describe(engine::Contract<ReinforceParams>& c) {
  c.type("reinforce", "policy gradient without a ratio; on-policy only");
  describe_policy_loss(c);
}

Surrogate Reinforce::surrogate(const PolicyTerms& terms) const {
  return {.losses = terms.advantages.neg().mul(terms.logprobs), .metrics = {}};
}

}  // namespace sluice::nodes
