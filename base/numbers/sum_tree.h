#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace sluice {

/// The fixed order in which numbers of several slots are added: neighbours first, then the sums of neighbours, and so on; who has
/// no neighbour on the right goes up as it is. What lies in one place adds its own part of the tree, a subtree, and the rest of
/// the tree is added from the subtrees: so the bits of a sum do not depend on how slots are spread.
///
/// Values; no failure but that of arguments that make no sense, an InternalError.
struct SlotRange {
  int first = 0;
  int last = 0;  // after the last one

  bool operator==(const SlotRange&) const = default;
};

/// The largest subtrees of the tree over `slots` that together are `range`, in order. One where the range is as long as a power
/// of two and begins at a multiple of it.
std::vector<SlotRange> subtrees_of(int slots, SlotRange range);

/// How the tree over `slots` is added from the values of `parts`, subtrees in order that together are one subtree or the whole
/// tree: for each pair, in order, value `first` becomes the sum of value `first` and value `second`. At last value 0 is the sum.
std::vector<std::pair<int, int>> tree_additions(int slots, const std::vector<SlotRange>& parts);

/// into[i] += from[i], and from[i] = 0.
void move_sum(float* into, float* from, int64_t count);

}  // namespace sluice
