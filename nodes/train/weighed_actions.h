#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>

#include "engine/contract/columns/layout.h"

namespace sluice::nodes {

/// The actions of some samples, of which each counts by its weight: what samples are worth as wholes.
class WeighedActions {
 public:
  /// `samples`: S' of those of `layout`, with A' actions; `mask` [A] of all of them, empty: each action counts 1.
  WeighedActions(const engine::Layout& layout, std::span<const size_t> samples, std::span<const float> mask);

  /// Sums over the actions of each sample, in double precision: [A'] -> [S'], differentiable. An entry without weight does not
  /// count, whatever it is.
  at::Tensor sums(const at::Tensor& entries) const;

  /// The weights of each sample's actions together: [S'].
  at::Tensor lengths() const;

 private:
  int64_t samples_;
  at::Tensor places_;   // [A'] int64: the sample of each action
  at::Tensor weights_;  // [A'] double
};

}  // namespace sluice::nodes
