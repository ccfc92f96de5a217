#include "nodes/objectives/value_huber.h"

#include "nodes/objectives/value_loss.h"

namespace sluice::nodes {

void ValueHuber::describe(engine::Contract<ValueHuberParams>& c) {
  c.type("value_huber", "error of the critic, squared when small and absolute when large");
  c.param("delta", &ValueHuberParams::delta).above(0).doc("the error from which on the loss grows linearly");
}

ObjectiveResult ValueHuber::compute(const ValueObjectiveInputs& inputs) const {
  const ValueTerms terms(inputs);
  const at::Tensor error = terms.values.sub(terms.returns).abs();  // [K]
  const at::Tensor near = error.clamp_max(params_.delta);          // its part that is squared
  return terms.mean(near.mul(error.sub(near.div(2))));
}

}  // namespace sluice::nodes
