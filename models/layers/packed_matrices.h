#pragma once

#include <vector>

#include "models/layers/packed_linear.h"

namespace sluice::models {

/// The linear layers of one decoder layer as products read them, adapters merged in. A copy shares the memory.
struct PackedMatrices {
  PackedLinear qkv;  // outputs: queries, then keys, then values
  PackedLinear attention_output;
  std::vector<PackedLinear> feed_forward;  // of each of FeedForward::stacks()
};

}  // namespace sluice::models
