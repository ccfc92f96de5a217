#include "nodes/objectives/value_mse.h"

#include "nodes/objectives/value_loss.h"

namespace sluice::nodes {

void ValueMse::describe(engine::Contract<ValueMseParams>& c) { c.type("value_mse", "half the squared error of the critic"); }

ObjectiveResult ValueMse::compute(const ValueObjectiveInputs& inputs) const {
  const ValueTerms terms(inputs);
  return terms.mean(terms.values.sub(terms.returns).square().div(2));
}

}  // namespace sluice::nodes
