#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "engine/contract/contract_breach.h"

namespace sluice::nodes {

/// Throws UserError unless `losses` has one entry for each of `count`. An objective may be a plugin's, and what has another shape
/// would be broadcast to a sum that trains something else, without a word. `what`: "action". Thread-safe.
inline void check_loss_shape(const at::Tensor& losses, int64_t count, const std::string& what) {
  if (losses.defined() && losses.dim() == 1 && losses.size(0) == count) return;
  std::string shape = "nothing";
  if (losses.defined()) {
    shape = "a tensor of shape [";
    for (const int64_t size : losses.sizes()) shape += (shape.back() == '[' ? "" : ", ") + std::to_string(size);
    shape += "]";
  }
  engine::throw_contract_breach("the objective gives " + shape + " for " + std::to_string(count) + " losses, one for each " +
                                what);
}

}  // namespace sluice::nodes
