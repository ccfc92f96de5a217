#include "nodes/objectives/value_mse.h"

namespace sluice::nodes {

void ValueMse::describe(engine::Contract<ValueMseParams>& c) { c.type("value_mse", "half the squared error of the critic"); }

ObjectiveResult ValueMse::compute(const ValueObjectiveInputs& inputs) const {
  const at::Tensor losses = inputs.values.sub(inputs.returns).square().div(2);  // [A]
  return {.loss_sum = losses.sum(), .count = static_cast<double>(losses.numel()), .metrics = {}};
}

}  // namespace sluice::nodes
