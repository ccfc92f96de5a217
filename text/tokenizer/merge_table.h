#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::text {

/// One rule of byte-pair encoding: `left` followed by `right` becomes `merged`. Its rank is its place in the list.
struct BpeMerge {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

/// The rules by their pair. Open addressing with linear probing over a power of two slots, at most half full: one cache line for
/// nearly every lookup. Immutable. Of two rules with the same pair the later one counts, as in the reference.
class MergeTable {
 public:
  struct Rule {
    uint32_t rank = UINT32_MAX;
    int32_t merged = -1;  // -1: no such rule
  };

  explicit MergeTable(const std::vector<BpeMerge>& merges);

  Rule find(int32_t left, int32_t right) const { return slots_[slot_of(left, right)].rule; }

 private:
  struct Slot {
    int32_t left = -1;
    int32_t right = -1;
    Rule rule;
  };

  size_t slot_of(int32_t left, int32_t right) const {
    const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
    const size_t mask = slots_.size() - 1;
    size_t slot = (key * 0x9E3779B97F4A7C15u >> 32) & mask;  // Fibonacci hashing
    while (slots_[slot].rule.merged >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<Slot> slots_;
};

}  // namespace sluice::text
