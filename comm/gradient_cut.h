#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/numbers/float_range.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// How gradients are added over ranks: which parts each rank has, and in which pieces the owners of floats
/// (base/numbers/float_range.h) work through what they own, one each in a round.
///
/// A value; all ranks have the same but for their own number. Failure: InternalError where ranks cannot share the slots evenly.
class GradientCut {
 public:
  static constexpr int64_t kBlock = kFloatsOfABlock;
  static constexpr int64_t kLargestPiece = 1 << 20;  // floats; the first and the last one go alone, small ones cost wake-ups
  static constexpr int kRounds = 3;                  // that are under way at once

  /// `most_staged`: floats that parts of other ranks may fill here, as long as pieces of a block fit into that.
  GradientCut(engine::World world, int slots, int64_t most_staged);

  engine::World world() const { return world_; }

  /// Parts are numbered in the order of ranks; those of `rank` begin at first_part(rank), and first_part(size) is how many there
  /// are.
  int first_part(int rank) const { return first_part_[static_cast<size_t>(rank)]; }
  int parts_of(int rank) const { return first_part(rank + 1) - first_part(rank); }
  int parts() const { return first_part_.back(); }

  /// As of tree_additions(), over all parts.
  const std::vector<std::pair<int, int>>& additions() const { return additions_; }

  int64_t piece_size() const { return piece_; }

  /// Until all `count` floats are added.
  int64_t rounds(int64_t count) const;

  /// What `owner` adds in this round; may be empty.
  FloatRange piece(int64_t count, int owner, int64_t round) const;

 private:
  engine::World world_;
  std::vector<int> first_part_;
  std::vector<std::pair<int, int>> additions_;
  int64_t piece_ = kBlock;
};

}  // namespace sluice::comm
