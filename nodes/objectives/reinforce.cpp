#include "nodes/objectives/reinforce.h"

namespace sluice::nodes {

void Reinforce::describe(engine::Contract<ReinforceParams>& c) {
  c.type("reinforce", "policy gradient without a ratio; on-policy only");
}

ObjectiveResult Reinforce::compute(const ObjectiveInputs& inputs) const {
  const at::Tensor losses = inputs.advantages.neg().mul(inputs.logprobs);  // [A]
  return {.loss_sum = losses.sum(), .count = static_cast<double>(losses.numel()), .metrics = {}};
}

}  // namespace sluice::nodes
