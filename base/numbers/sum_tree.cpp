#include "base/numbers/sum_tree.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace sluice {
namespace {

// A node of the tree: slots [first, first + size), less those that there are not. Size is a power of two.
struct Block {
  int first = 0;
  int size = 1;

  SlotRange range(int slots) const { return {first, std::min(first + size, slots)}; }
  Block left() const { return {first, size / 2}; }
  Block right() const { return {first + size / 2, size / 2}; }
};

Block whole_tree(int slots) { return {0, static_cast<int>(std::bit_ceil(static_cast<unsigned>(slots)))}; }

void add_subtrees(int slots, Block block, SlotRange wanted, std::vector<SlotRange>& found) {
  const SlotRange range = block.range(slots);
  if (range.first >= range.last || range.last <= wanted.first || wanted.last <= range.first) return;
  if (wanted.first <= range.first && range.last <= wanted.last) {
    found.push_back(range);
    return;
  }
  add_subtrees(slots, block.left(), wanted, found);
  add_subtrees(slots, block.right(), wanted, found);
}

// Returns which part the sum of the block is in; -1: no part lies in it.
int add_block(int slots, Block block, const std::vector<SlotRange>& parts, std::vector<std::pair<int, int>>& additions) {
  const SlotRange range = block.range(slots);
  const auto found = std::ranges::find(parts, range);
  if (found != parts.end()) return static_cast<int>(found - parts.begin());
  if (range.first >= range.last || block.size == 1) return -1;
  const int left = add_block(slots, block.left(), parts, additions);
  const int right = add_block(slots, block.right(), parts, additions);
  if (left < 0 || right < 0) return std::max(left, right);
  additions.emplace_back(left, right);
  return left;
}

}  // namespace

std::vector<SlotRange> subtrees_of(int slots, SlotRange range) {
  SLUICE_CHECK(0 <= range.first && range.first < range.last && range.last <= slots, "a range of slots that are not there");
  std::vector<SlotRange> found;
  add_subtrees(slots, whole_tree(slots), range, found);
  return found;
}

std::vector<std::pair<int, int>> tree_additions(int slots, const std::vector<SlotRange>& parts) {
  SLUICE_CHECK(slots > 0 && !parts.empty(), "a tree of nothing");
  std::vector<std::pair<int, int>> additions;
  const bool found = add_block(slots, whole_tree(slots), parts, additions) >= 0;
  SLUICE_CHECK(found && additions.size() + 1 == parts.size(), "parts that are no subtrees");
  return additions;
}

void move_sum(float* into, float* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    into[i] += from[i];
    from[i] = 0;
  }
}

}  // namespace sluice
