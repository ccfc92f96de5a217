#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <vector>

#include "engine/contract/columns/layout.h"
#include "nodes/objectives/preference/preference_objective.h"
#include "nodes/train/unit_passes.h"

namespace sluice::nodes {

/// The better and the worse sample of a group, as places in a layout.
struct SamplePair {
  size_t group = 0;
  size_t chosen = 0;
  size_t rejected = 0;
};

/// A pair for each group that has two different scores: of its samples the one with the best score and the one with the worst, of
/// equals the first. `scores` [S]. Throws UserError for a score that is not finite.
std::vector<SamplePair> pairs_by_score(const engine::Layout& layout, std::span<const float> scores);

/// Likewise, passing over samples without an action that has a weight; `mask` [A], empty: each action has one.
std::vector<SamplePair> pairs_with_actions(const engine::Layout& layout, std::span<const float> scores,
                                           std::span<const float> mask);

/// How pairs are computed in passes of at most `limit` tokens.
UnitPasses<SamplePair> passes_of_pairs(const engine::Layout& layout, const std::vector<SamplePair>& pairs, int64_t limit);

/// The samples of pairs as a batch of their own: 2P samples, ascending, with A' actions.
class PairedSamples {
 public:
  explicit PairedSamples(const std::vector<SamplePair>& pairs);

  size_t pairs() const { return samples_.size() / 2; }
  const std::vector<size_t>& samples() const { return samples_; }

  /// Of `x` [2P], an entry a sample, those of the chosen samples [P] and of the rejected ones.
  at::Tensor chosen(const at::Tensor& x) const;
  at::Tensor rejected(const at::Tensor& x) const;

 private:
  std::vector<size_t> samples_;
  at::Tensor chosen_;    // [P] int64 places in samples_
  at::Tensor rejected_;  // [P]
};

/// What a preference objective sees of the actions of paired samples, in double precision: sums over the actions of a sample,
/// each with its weight. An action without weight does not count, whatever its log-probability is.
///
/// layout, mask [A]  where the samples are from; an empty mask: each action counts 1
/// logprobs    [A']  under the policy, of the actions of paired.samples(); carries the gradient
/// reference   [A']  the same under the reference, or undefined
PreferenceInputs preference_inputs(const PairedSamples& paired, const engine::Layout& layout, std::span<const float> mask,
                                   const at::Tensor& logprobs, const at::Tensor& reference);

}  // namespace sluice::nodes
