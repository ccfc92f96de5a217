#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/forward/transformer.h"

namespace sluice::nodes {

/// What a node wants to know of some tokens of a pass. A value.
struct PassRequest {
  at::Tensor tokens;                    // [n] int64, of the pass or of a segment of it
  std::vector<int64_t> sample_offsets;  // [S+1] of the whole pass
  at::Tensor places;                    // [N] int64, into `tokens`, ascending: whose states are asked
  at::Tensor targets;                   // [N] int64, the tokens after them; of log-probabilities
  at::Tensor routes;                    // [n,bytes] uint8 of the tokens, see Transformer::hidden_states(); may be undefined

  bool logprobs = false;  // of the targets, at this temperature, and the entropies of what they were drawn from
  bool entropy = false;
  bool values = false;  // what the value head makes of the states
  double temperature = 1;

  size_t outputs() const { return size_t{logprobs} + size_t{entropy} + size_t{values}; }
};

/// Of the places of a request, [N] float32 each on the host, in the order of its flags: differentiable in the weights that need a
/// gradient. Without places, too, as other ranks of the pass may have some.
std::vector<at::Tensor> outputs_of(const models::Transformer& model, const PassRequest& request, const models::Segment& segment);

}  // namespace sluice::nodes
