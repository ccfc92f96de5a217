#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/contract/columns/layout.h"

namespace sluice::nodes {

/// Cuts a micro-batch into passes: what a model computes at once, at most [budget] pass_tokens tokens. A unit, which is what may
/// not be cut, is a sample or a pair of samples. Pure functions.

/// Every unit of `tokens` [U] in exactly one pass; each pass has the indices of its units, ascending. No pass has more than
/// `limit` tokens. First-fit in the order of the units, or in the order of their size, the largest first, where that gives fewer
/// passes. It depends on the lengths and the limit alone. Throws InternalError for a unit of more than `limit` tokens: which
/// samples there can be is checked before the run.
std::vector<std::vector<size_t>> cut_into_passes(std::span<const int64_t> tokens, int64_t limit);

/// Likewise the samples `chosen` (ascending indices into those of `layout`): each pass has some of them, ascending.
std::vector<std::vector<size_t>> passes_of(const engine::Layout& layout, std::span<const size_t> chosen, int64_t limit);

}  // namespace sluice::nodes
