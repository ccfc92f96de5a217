#include "comm/gradient_cut.h"

#include <algorithm>

#include "base/error.h"
#include "base/sum_tree.h"

namespace sluice::comm {
namespace {

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

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

int64_t GradientCut::owned(int64_t count) const { return divided_up(divided_up(count, kBlock), world_.size) * kBlock; }

int64_t GradientCut::rounds(int64_t count) const { return divided_up(std::min(count, owned(count)), piece_); }

FloatRange GradientCut::piece(int64_t count, int owner, int64_t round) const {
  const int64_t end_of_owner = std::min(count, (owner + 1) * owned(count));
  const int64_t begin = std::min(end_of_owner, owner * owned(count) + round * piece_);
  return {begin, std::min(end_of_owner, begin + piece_)};
}

}  // namespace sluice::comm
