#pragma once

#include "engine/contract/contract.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// Huber's loss of the critic (Huber 1964): (v - R)^2 / 2 up to |v - R| = delta, beyond delta (|v - R| - delta / 2).
///
///   value_objective = { type = "value_huber", delta = 1.0 }
struct ValueHuberParams {
  double delta = 1.0;
};

class ValueHuber final : public ValueObjective {
 public:
  static void describe(engine::Contract<ValueHuberParams>& contract);

  explicit ValueHuber(const ValueHuberParams& params) : params_(params) {}

  bool reads_old_values() const override { return false; }
  ObjectiveResult compute(const ValueObjectiveInputs& inputs) const override;

 private:
  ValueHuberParams params_;
};

}  // namespace sluice::nodes
