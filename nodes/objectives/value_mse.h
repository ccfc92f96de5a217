#pragma once

#include "engine/contract/contract.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// Half the squared error of the critic: (v - R)^2 / 2.
///
///   value_objective = "value_mse"
struct ValueMseParams {};

class ValueMse final : public ValueObjective {
 public:
  static void describe(engine::Contract<ValueMseParams>& contract);

  explicit ValueMse(const ValueMseParams&) {}

  bool reads_old_values() const override { return false; }
  ObjectiveResult compute(const ValueObjectiveInputs& inputs) const override;
};

}  // namespace sluice::nodes
