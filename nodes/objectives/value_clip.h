#pragma once

#include "engine/contract/contract.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// Squared error of the critic, with its move from the old value clipped (the PPO2 baseline of OpenAI):
/// max((v - R)^2, (old + clamp(v - old, -clip, clip) - R)^2) / 2.
///
///   value_objective = { type = "value_clip", clip = 0.2 }
struct ValueClipParams {
  engine::ScheduledNumber clip = 0.2;
};

class ValueClip final : public ValueObjective {
 public:
  static void describe(engine::Contract<ValueClipParams>& contract);

  explicit ValueClip(const ValueClipParams& params) : params_(params) {}

  bool reads_old_values() const override { return true; }
  ObjectiveResult compute(const ValueObjectiveInputs& inputs) const override;

 private:
  ValueClipParams params_;
};

}  // namespace sluice::nodes
