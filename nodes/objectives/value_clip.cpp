#include "nodes/objectives/value_clip.h"

namespace sluice::nodes {

void ValueClip::describe(engine::Contract<ValueClipParams>& c) {
  c.type("value_clip", "half the squared error of the critic, moves beyond `clip` not rewarded");
  c.param("clip", &ValueClipParams::clip).above(0).doc("how far a value may move from the old one");
  c.metric("value_clip_fraction", "part of the actions whose value is clipped");
}

ObjectiveResult ValueClip::compute(const ValueObjectiveInputs& inputs) const {
  if (inputs.values.numel() == 0) return {.loss_sum = inputs.values.sum(), .count = 0, .metrics = {}};

  const at::Tensor move = inputs.values.sub(inputs.old_values);                            // [A]
  const at::Tensor near = inputs.old_values.add(move.clamp(-params_.clip, params_.clip));  // [A]
  const at::Tensor free = inputs.values.sub(inputs.returns).square();                      // [A]
  const at::Tensor clipped = near.sub(inputs.returns).square();                            // [A]
  const at::Tensor losses = free.maximum(clipped).div(2);
  const at::Tensor moved = move.abs().gt(params_.clip);  // inside the range the two differ by rounding only
  return {.loss_sum = losses.sum(),
          .count = static_cast<double>(losses.numel()),
          .metrics = {mean_metric("value_clip_fraction", moved.logical_and(clipped.gt(free)))}};
}

}  // namespace sluice::nodes
