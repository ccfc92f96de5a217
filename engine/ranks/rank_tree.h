#pragma once

#include <vector>

namespace sluice::engine {

/// How what all ranks have is brought together with few messages. Ranks are in groups of up to eight neighbours. The first of a
/// group collects for it, and is in a group of such collectors one level higher, up to a level with a single group. There each
/// tells all others. From there the result goes back down. So up to eight ranks tell each other directly, in one hop; and N ranks
/// send about 2 N messages, where each would have to tell N - 1.
///
/// What a rank has collected is of neighbours: put together in the order of the ranks in a group it is in the order of all ranks.
/// A value.
class RankTree {
 public:
  static constexpr int kGroup = 8;

  explicit RankTree(int size);

  /// Levels, from 0 to top(), in whose groups the rank is: up to this one.
  int highest(int rank) const;
  int top() const { return top_; }

  /// Messages one after the other until all have the result.
  int hops() const { return 2 * top_ + 1; }

  /// The ranks of a rank's group at a level that it is in, ascending. Below its highest level the rank is the first of them.
  std::vector<int> group(int rank, int level) const;

  /// Who tells the rank the result; -1: it has it from its group, at the top.
  int above(int rank) const;

  /// Whom it tells.
  std::vector<int> below(int rank) const;

 private:
  static int stride(int level);

  int size_;
  int top_ = 0;
};

}  // namespace sluice::engine
