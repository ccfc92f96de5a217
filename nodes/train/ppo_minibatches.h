#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::nodes {

/// The groups of an iteration, dealt out to the mini-batches of one epoch: `parts` disjoint sets that together are 0..groups-1,
/// each ascending, their sizes at most one apart (some are empty when there are fewer groups than parts). The same (seed,
/// iteration, epoch) gives the same sets, however the groups were packed into micro-batches.
std::vector<std::vector<size_t>> deal_groups(size_t groups, int64_t parts, uint64_t seed, int64_t iteration, int64_t epoch);

/// Those of `part` (ascending) that lie in [first, first + count), counted from `first`.
std::vector<size_t> groups_within(std::span<const size_t> part, size_t first, size_t count);

}  // namespace sluice::nodes
