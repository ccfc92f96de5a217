#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "engine/contract/columns/contract_breach.h"

namespace sluice::nodes {

/// Throws UserError unless `losses` has one entry for each of `count`, and depends on `logprobs` where these are trained. An
/// objective may be a plugin's: what has another shape would be broadcast to a sum that trains something else, and what depends
/// on nothing trains nothing, both without a word. `what`: "action". Thread-safe.
inline void check_losses(const at::Tensor& losses, const at::Tensor& logprobs, int64_t count, const std::string& what) {
  const bool fits = losses.defined() && losses.dim() == 1 && losses.size(0) == count;
  if (fits && logprobs.requires_grad() && !losses.requires_grad())
    engine::throw_contract_breach("the objective's losses do not depend on the log-probabilities, so nothing would be learned");
  if (fits) return;
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
