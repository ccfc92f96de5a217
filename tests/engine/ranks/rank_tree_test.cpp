#include "engine/ranks/rank_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice::engine::rank_tree_test {
namespace {

// What a rank has collected when the groups of all its levels up to this one have told it what they have, in that order.
std::vector<int> collected(const RankTree& tree, int rank, int level) {
  if (level < 0) return {rank};
  std::vector<int> all;
  for (const int other : tree.group(rank, level)) {
    const std::vector<int> of_other = collected(tree, other, level - 1);
    all.insert(all.end(), of_other.begin(), of_other.end());
  }
  return all;
}

TEST(RankTree, BringsAllRanksTogetherInTheirOrder) {
  for (const int size : {1, 2, 3, 7, 8, 9, 16, 17, 63, 64, 65, 500, 513}) {
    SCOPED_TRACE(size);
    const RankTree tree(size);
    std::vector<int> all(static_cast<size_t>(size));
    std::iota(all.begin(), all.end(), 0);
    for (int rank = 0; rank < size; ++rank) {
      if (tree.highest(rank) != tree.top()) continue;
      EXPECT_EQ(collected(tree, rank, tree.top()), all);
    }
  }
}

TEST(RankTree, TellsEachRankOnce) {
  for (const int size : {1, 2, 8, 9, 17, 64, 65, 513}) {
    SCOPED_TRACE(size);
    const RankTree tree(size);
    std::vector<int> told(static_cast<size_t>(size));
    for (int rank = 0; rank < size; ++rank) {
      told[static_cast<size_t>(rank)] += tree.above(rank) < 0 ? 1 : 0;
      for (const int other : tree.below(rank)) {
        EXPECT_EQ(tree.above(other), rank);
        ++told[static_cast<size_t>(other)];
      }
    }
    EXPECT_EQ(told, std::vector<int>(static_cast<size_t>(size), 1));
  }
}

TEST(RankTree, OfUpToEightRanksIsOneGroup) {
  EXPECT_EQ(RankTree(8).hops(), 1);
  EXPECT_EQ(RankTree(9).hops(), 3);
  EXPECT_EQ(RankTree(64).hops(), 3);
  EXPECT_EQ(RankTree(65).hops(), 5);
}

// Two for each rank and what the last group tells each other, where each to all others would be a million of them.
TEST(RankTree, SendsFewMessages) {
  const RankTree tree(1024);
  size_t messages = 0;
  for (int rank = 0; rank < 1024; ++rank)
    messages += tree.below(rank).size() + (tree.above(rank) < 0 ? tree.group(rank, tree.top()).size() - 1 : 1);
  EXPECT_LT(messages, 2100u);
}

}  // namespace
}  // namespace sluice::engine::rank_tree_test
