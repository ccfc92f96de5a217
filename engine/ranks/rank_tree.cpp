#include "engine/ranks/rank_tree.h"

namespace sluice::engine {

RankTree::RankTree(int size) : size_(size) {
  while (stride(top_ + 1) < size) ++top_;
}

int RankTree::stride(int level) {
  int stride = 1;
  for (; level > 0; --level) stride *= kGroup;
  return stride;
}

int RankTree::highest(int rank) const {
  int level = 0;
  while (level < top_ && rank % stride(level + 1) == 0) ++level;
  return level;
}

std::vector<int> RankTree::group(int rank, int level) const {
  const int step = stride(level), first = rank - rank % (step * kGroup);
  std::vector<int> ranks;
  for (int k = 0; k < kGroup && first + k * step < size_; ++k) ranks.push_back(first + k * step);
  return ranks;
}

int RankTree::above(int rank) const {
  const int level = highest(rank);
  return level == top_ ? -1 : group(rank, level).front();
}

std::vector<int> RankTree::below(int rank) const {
  std::vector<int> ranks;
  for (int level = 0; level < highest(rank); ++level) {
    for (const int other : group(rank, level)) {
      if (other != rank) ranks.push_back(other);
    }
  }
  return ranks;
}

}  // namespace sluice::engine
