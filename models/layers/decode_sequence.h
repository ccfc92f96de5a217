#pragma once

#include <cstdint>
#include <span>

namespace sluice::models {

/// The new tokens of one sequence in a step and where it keeps its keys and values.
struct DecodeSequence {
  std::span<const int64_t> tokens;  // >= 1, at the positions [cached, cached + tokens.size())
  int64_t cached = 0;
  std::span<const int32_t> blocks;  // of the cache given to step(), with room for cached + tokens.size() tokens
  bool wants_logits = true;         // false for a chunk of a prompt that is not its last
};

}  // namespace sluice::models
