#include "comm/gradient_cut.h"

#include <algorithm>

#include "base/error.h"
#include "base/numbers/sum_tree.h"

namespace sluice::comm {
GradientCut::GradientCut(engine::World world, int slots, int64_t most_staged) : world_(world), first_part_{0} {
  SLUICE_CHECK(world.size > 0 && slots > 0 && slots % world.size == 0, "ranks that cannot share the slots");
  const int slots_of_rank = slots / world.size;
  std::vector<SlotRange> all;
  for (int first = 0; first < slots; first += slots_of_rank) {
    const auto own = subtrees_of(slots, {first, first + slots_of_rank});
    all.insert(all.end(), own.begin(), own.end());
    first_part_.push_back(static_cast<int>(all.size()));
  }
  additions_ = tree_additions(slots, all);
  const int64_t fits = most_staged / (kRounds * parts());
  piece_ = std::clamp(fits / kBlock * kBlock, kBlock, kLargestPiece);
}

// The first owner has the most.
int64_t GradientCut::rounds(int64_t count) const { return (owned_floats(count, 0, world_.size).size() + piece_ - 1) / piece_; }

FloatRange GradientCut::piece(int64_t count, int owner, int64_t round) const {
  const FloatRange owned = owned_floats(count, owner, world_.size);
  const int64_t begin = std::min(owned.end, owned.begin + round * piece_);
  return {begin, std::min(owned.end, begin + piece_)};
}

}  // namespace sluice::comm
