#pragma once

#include <ATen/core/Tensor.h>

#include "nodes/objectives/kept_actions.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// The entries of the actions that count, [K] each, of what a value objective sees.
struct ValueTerms {
  explicit ValueTerms(const ValueObjectiveInputs& inputs)
      : kept(inputs.mask, {0, inputs.values.numel()}, inputs.values.options().requires_grad(false)),
        values(kept.of(inputs.values)),
        old_values(kept.of(inputs.old_values)),
        returns(kept.of(inputs.returns)) {}

  /// The mean over the actions that count of `losses` [K].
  ObjectiveResult mean(const at::Tensor& losses, std::vector<ObjectiveMetric> metrics = {}) const {
    return {kept.weighted(losses).sum(), kept.total_weight(), std::move(metrics)};
  }

  KeptActions kept;
  at::Tensor values;      // carries the gradient
  at::Tensor old_values;  // constant; undefined unless given
  at::Tensor returns;     // constant
};

}  // namespace sluice::nodes
