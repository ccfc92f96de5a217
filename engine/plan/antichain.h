#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sluice::engine {

/// The largest sum of weights of elements none of which precedes another: what can exist together at worst, where an element is
/// gone before those that it precedes come. `precedes(a, b)` is asked once for each pair and must be transitive and irreflexive.
/// Source: Dilworth's theorem with weights; the sum of all weights less the largest flow from each element into those that it
/// precedes.
int64_t heaviest_antichain(const std::vector<int64_t>& weights, const std::function<bool(size_t, size_t)>& precedes);

}  // namespace sluice::engine
