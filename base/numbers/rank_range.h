#pragma once

namespace sluice {

/// Ranks next to each other; by default none.
struct RankRange {
  int first = 0, count = 0;

  bool has(int rank) const { return first <= rank && rank < first + count; }
  bool any() const { return count > 0; }
};

}  // namespace sluice
