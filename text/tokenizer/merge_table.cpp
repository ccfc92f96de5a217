#include "text/tokenizer/merge_table.h"

#include <bit>

namespace sluice::text {

MergeTable::MergeTable(const std::vector<BpeMerge>& merges) : slots_(std::bit_ceil(2 * merges.size() + 2)) {
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const BpeMerge& merge = merges[rank];
    slots_[slot_of(merge.left, merge.right)] = {merge.left, merge.right, {static_cast<uint32_t>(rank), merge.merged}};
  }
}

}  // namespace sluice::text
