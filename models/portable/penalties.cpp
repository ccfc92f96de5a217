#include "models/portable/penalties.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

namespace sluice::models::portable {

// What becomes of a logit is worked out at every place of the text, and depends on the id there alone: places with one id, those
// after the text as well, write the same number.
at::Tensor penalized(const at::Tensor& logits, const Texts& texts, const at::Tensor& prompts, const SamplingOptions& options) {
  const at::Tensor place = at::arange(texts.ids.size(1), texts.ids.options());
  const at::Tensor inside = place.lt(texts.lengths);  // [R,L]
  const at::Tensor counts = at::zeros_like(logits);
  // How often the id of each place occurs at the chosen places: [R,L].
  const auto times_at = [&](const at::Tensor& chosen) {
    counts.zero_().scatter_add_(1, texts.ids, chosen.to(logits.scalar_type()));
    return counts.gather(1, texts.ids);
  };
  at::Tensor changed = logits.gather(1, texts.ids);
  if (const double penalty = options.repetition_penalty; penalty != 1) {
    const at::Tensor repeated = at::where(changed.gt(0), changed.div(penalty), changed.mul(penalty));
    changed = at::where(times_at(inside).gt(0), repeated, changed);
  }
  if (options.presence_penalty != 0 || options.frequency_penalty != 0) {
    const at::Tensor times = times_at(inside.logical_and(place.ge(prompts)));
    const at::Tensor lowered = changed.sub(times.mul(options.frequency_penalty)).sub_(options.presence_penalty);
    changed = at::where(times.gt(0), lowered, changed);
  }
  return logits.scatter(1, texts.ids, changed);
}

}  // namespace sluice::models::portable
