#include "nodes/train/weighed_actions.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <vector>

#include "nodes/forward/ragged.h"

namespace sluice::nodes {
namespace {

at::Tensor sample_of_action(const engine::Layout& layout, std::span<const size_t> samples) {
  std::vector<int64_t> places;
  for (size_t i = 0; i < samples.size(); ++i) {
    const int64_t actions = layout.action_offsets[samples[i] + 1] - layout.action_offsets[samples[i]];
    places.insert(places.end(), static_cast<size_t>(actions), static_cast<int64_t>(i));
  }
  return places_tensor(places);
}

}  // namespace

WeighedActions::WeighedActions(const engine::Layout& layout, std::span<const size_t> samples, std::span<const float> mask)
    : samples_(static_cast<int64_t>(samples.size())),
      places_(sample_of_action(layout, samples)),
      weights_(mask.empty() ? at::ones({places_.numel()}, at::kDouble) : action_tensor(mask, layout, samples).to(at::kDouble)) {}

at::Tensor WeighedActions::sums(const at::Tensor& entries) const {
  const at::Tensor counted = at::where(weights_.ne(0), entries.to(at::kDouble), at::zeros({}, at::kDouble)).mul(weights_);
  return at::zeros({samples_}, at::kDouble).index_add(0, places_, counted);
}

at::Tensor WeighedActions::lengths() const { return sums(at::ones_like(weights_)); }

}  // namespace sluice::nodes
