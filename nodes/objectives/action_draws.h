#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "engine/contract/columns/layout.h"

namespace sluice::nodes {

/// For what the actions of an optimizer step are drawn.
struct ActionDraws {
  uint64_t seed = 0;
  int64_t iteration = 0;
  int64_t epoch = 0;
};

/// 32 random bits of each action of the samples `chosen`: [A'] int64. Of a stream with the name of the sample, that is of its
/// group within the iteration (`group_index`, of a group of `layout`) and of its place there: the same whatever it is packed
/// with, and whichever rank has it.
at::Tensor draws_of(const ActionDraws& draws, const engine::Layout& layout, const std::function<int64_t(size_t)>& group_index,
                    std::span<const size_t> chosen);

}  // namespace sluice::nodes
