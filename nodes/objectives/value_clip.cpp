#include "nodes/objectives/value_clip.h"

#include "nodes/objectives/value_loss.h"

namespace sluice::nodes {

void ValueClip::describe(engine::Contract<ValueClipParams>& c) {
  c.type("value_clip", "half the squared error of the critic, moves beyond `clip` not rewarded");
  c.param("clip", &ValueClipParams::clip).above(0).recorded_as("value/clip").doc("how far a value may move from the old one");
  c.metric("value/clip_fraction", engine::Metric::kMean, "part of the actions whose value is clipped");
}

ObjectiveResult ValueClip::compute(const ValueObjectiveInputs& inputs) const {
  const ValueTerms terms(inputs);
  if (terms.kept.count() == 0) return terms.mean(terms.values);

  const double clip = params_.clip.at(inputs.iteration);
  const at::Tensor move = terms.values.sub(terms.old_values);             // [K]
  const at::Tensor near = terms.old_values.add(move.clamp(-clip, clip));  // [K]
  const at::Tensor free = terms.values.sub(terms.returns).square();       // [K]
  const at::Tensor clipped = near.sub(terms.returns).square();            // [K]
  const at::Tensor moved = move.abs().gt(clip);                           // inside the range the two differ by rounding only
  return terms.mean(free.maximum(clipped).div(2), {mean_metric("value/clip_fraction", moved.logical_and(clipped.gt(free)))});
}

}  // namespace sluice::nodes
