#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/config/config.h"

namespace sluice::models {

/// What an MLP has between its projections, for some rows: what goes into the activation, [T,I], and what its result is
/// multiplied with, undefined in a plain network. Handles.
struct Inner {
  at::Tensor gate, up;

  /// The first one or two of `tensors`; nothing of none.
  explicit Inner(std::span<const at::Tensor> tensors);

  Inner rows(int64_t first, int64_t count) const;
};

/// From projections in float32 to an operand; `kept` becomes them, rounded, if it is defined.
void activate_all(Activation activation, const Inner& inner, const Inner& kept, const at::Tensor& out);

/// `inner` becomes its gradients, `grad`, of what the activation gave, becomes what it gave. Operands.
void differentiate(Activation activation, const Inner& inner, const at::Tensor& grad);

}  // namespace sluice::models
