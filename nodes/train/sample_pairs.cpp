#include "nodes/train/sample_pairs.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "nodes/forward/ragged.h"
#include "nodes/train/weighed_actions.h"

namespace sluice::nodes {
namespace {

using engine::Layout;

std::vector<SamplePair> pairs_of(const Layout& layout, std::span<const float> scores, const auto& counts) {
  std::vector<SamplePair> pairs;
  for (size_t g = 0; g < layout.groups(); ++g) {
    const auto begin = static_cast<size_t>(layout.group_offsets[g]), end = static_cast<size_t>(layout.group_offsets[g + 1]);
    SamplePair pair{.group = g, .chosen = end, .rejected = end};
    for (size_t s = begin; s < end; ++s) {
      if (!counts(s)) continue;
      if (!std::isfinite(scores[s])) throw UserError("a score is not finite, so samples cannot be compared by it");
      if (pair.chosen == end || scores[s] > scores[pair.chosen]) pair.chosen = s;
      if (pair.rejected == end || scores[s] < scores[pair.rejected]) pair.rejected = s;
    }
    if (pair.chosen != pair.rejected) pairs.push_back(pair);  // equal: no sample, or no two scores
  }
  return pairs;
}

}  // namespace

std::vector<SamplePair> pairs_by_score(const Layout& layout, std::span<const float> scores) {
  return pairs_of(layout, scores, [](size_t) { return true; });
}

std::vector<SamplePair> pairs_with_actions(const Layout& layout, std::span<const float> scores, std::span<const float> mask) {
  return pairs_of(layout, scores, [&](size_t sample) {
    const auto first = static_cast<size_t>(layout.action_offsets[sample]);
    const auto actions = static_cast<size_t>(layout.action_offsets[sample + 1]) - first;
    if (mask.empty()) return actions > 0;
    return std::ranges::any_of(mask.subspan(first, actions), [](float weight) { return weight != 0; });
  });
}

UnitPasses<SamplePair> passes_of_pairs(const Layout& layout, const std::vector<SamplePair>& pairs, int64_t limit) {
  const auto tokens_of = [&](size_t sample) { return layout.token_offsets[sample + 1] - layout.token_offsets[sample]; };
  std::vector<int64_t> tokens;  // of both samples
  for (const SamplePair& pair : pairs) tokens.push_back(tokens_of(pair.chosen) + tokens_of(pair.rejected));
  return passes_of_units(pairs, tokens, limit);
}

PairedSamples::PairedSamples(const std::vector<SamplePair>& pairs) {
  std::vector<int64_t> chosen, rejected;
  for (const SamplePair& pair : pairs) {
    const auto first = static_cast<int64_t>(samples_.size());
    samples_.push_back(std::min(pair.chosen, pair.rejected));
    samples_.push_back(std::max(pair.chosen, pair.rejected));
    chosen.push_back(first + (pair.chosen > pair.rejected ? 1 : 0));
    rejected.push_back(first + (pair.rejected > pair.chosen ? 1 : 0));
  }
  chosen_ = places_tensor(chosen);
  rejected_ = places_tensor(rejected);
}

at::Tensor PairedSamples::chosen(const at::Tensor& x) const { return x.index_select(0, chosen_); }
at::Tensor PairedSamples::rejected(const at::Tensor& x) const { return x.index_select(0, rejected_); }

PreferenceInputs preference_inputs(const PairedSamples& paired, const Layout& layout, std::span<const float> mask,
                                   const at::Tensor& logprobs, const at::Tensor& reference) {
  const WeighedActions actions(layout, paired.samples(), mask);
  const at::Tensor policy = actions.sums(logprobs), lengths = actions.lengths();  // [2P]
  PreferenceInputs inputs{.chosen = {.policy = paired.chosen(policy), .reference = {}, .lengths = paired.chosen(lengths)},
                          .rejected = {.policy = paired.rejected(policy), .reference = {}, .lengths = paired.rejected(lengths)}};
  if (reference.defined()) {
    const at::Tensor of_reference = actions.sums(reference);
    inputs.chosen.reference = paired.chosen(of_reference);
    inputs.rejected.reference = paired.rejected(of_reference);
  }
  return inputs;
}

}  // namespace sluice::nodes
