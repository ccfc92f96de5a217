#include "base/numbers/sum_tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::sum_tree_test {
namespace {

constexpr int kMostSlots = 16;

// Numbers of very different size: another order of addition gives other bits.
std::vector<float> values_of(int slots, uint64_t seed) {
  RandomStream random(seed, static_cast<uint64_t>(slots));
  std::vector<float> values;
  for (int i = 0; i < slots; ++i)
    values.push_back(std::ldexp(static_cast<float>(random.normal()), static_cast<int>(random.below(24))));
  return values;
}

std::vector<SlotRange> single_slots(SlotRange range) {
  std::vector<SlotRange> parts;
  for (int slot = range.first; slot < range.last; ++slot) parts.push_back({slot, slot + 1});
  return parts;
}

// The sum of the values of `parts` as tree_additions() says.
float added(int slots, const std::vector<SlotRange>& parts, std::vector<float> values) {
  for (const auto& [first, second] : tree_additions(slots, parts)) {
    move_sum(&values[static_cast<size_t>(first)], &values[static_cast<size_t>(second)], 1);
  }
  return values.front();
}

// One round of neighbours after the other; who has no neighbour on the right goes up as it is.
float by_rounds(std::vector<float> values) {
  while (values.size() > 1) {
    std::vector<float> sums;
    for (size_t i = 0; i + 1 < values.size(); i += 2) sums.push_back(values[i] + values[i + 1]);
    if (values.size() % 2 == 1) sums.push_back(values.back());
    values = sums;
  }
  return values.front();
}

// Each rank adds the subtrees of its slots; then all subtrees are added.
float by_ranks(int slots, int ranks, const std::vector<float>& values) {
  std::vector<SlotRange> subtrees;
  std::vector<float> sums;
  const int each = slots / ranks;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const SlotRange& subtree : subtrees_of(slots, {rank * each, (rank + 1) * each})) {
      subtrees.push_back(subtree);
      sums.push_back(added(slots, single_slots(subtree), {values.begin() + subtree.first, values.begin() + subtree.last}));
    }
  }
  return added(slots, subtrees, sums);
}

TEST(SumTree, AddsNeighboursFirst) {
  for (int slots = 1; slots <= kMostSlots; ++slots) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const std::vector<float> values = values_of(slots, seed);
      EXPECT_EQ(added(slots, single_slots({0, slots}), values), by_rounds(values)) << slots;
    }
  }
}

TEST(SumTree, HasTheSameBitsHoweverManyRanksThereAre) {
  for (int slots = 1; slots <= kMostSlots; ++slots) {
    for (int ranks = 1; ranks <= slots; ++ranks) {
      if (slots % ranks != 0) continue;
      for (uint64_t seed = 0; seed < 20; ++seed) {
        const std::vector<float> values = values_of(slots, seed);
        EXPECT_EQ(by_ranks(slots, ranks, values), by_rounds(values)) << slots << " slots of " << ranks << " ranks";
      }
    }
  }
}

// Written by hand, as a person would bracket them.
TEST(SumTree, IsBracketedAsWritten) {
  const std::vector<float> v = values_of(9, 5);
  const std::vector<float> expected = {
      v[0],
      v[0] + v[1],
      (v[0] + v[1]) + v[2],
      (v[0] + v[1]) + (v[2] + v[3]),
      ((v[0] + v[1]) + (v[2] + v[3])) + v[4],
      ((v[0] + v[1]) + (v[2] + v[3])) + (v[4] + v[5]),
      ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + v[6]),
      ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])),
      (((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))) + v[8],
  };
  for (int slots = 1; slots <= 9; ++slots) {
    const std::vector<float> values(v.begin(), v.begin() + slots);
    EXPECT_EQ(added(slots, single_slots({0, slots}), values), expected[static_cast<size_t>(slots) - 1]) << slots;
  }
}

TEST(SumTree, OfARankIsOneSubtreeWhereItsSlotsAreAPowerOfTwo) {
  EXPECT_EQ(subtrees_of(8, {4, 8}), (std::vector<SlotRange>{{4, 8}}));
  EXPECT_EQ(subtrees_of(6, {0, 3}), (std::vector<SlotRange>{{0, 2}, {2, 3}}));
  EXPECT_EQ(subtrees_of(6, {3, 6}), (std::vector<SlotRange>{{3, 4}, {4, 6}}));
  EXPECT_EQ(subtrees_of(5, {0, 5}), (std::vector<SlotRange>{{0, 5}}));
}

TEST(SumTree, RefusesWhatMakesNoSense) {
  EXPECT_THROW(subtrees_of(4, {2, 2}), InternalError);
  EXPECT_THROW(subtrees_of(4, {3, 5}), InternalError);
  EXPECT_THROW(tree_additions(4, {}), InternalError);
  EXPECT_THROW(tree_additions(4, {{1, 3}}), InternalError);
}

TEST(MoveSum, LeavesNothingBehind) {
  std::vector<float> into = {1, 2, 3}, from = {4, 5, 6};
  move_sum(into.data(), from.data(), 2);
  EXPECT_EQ(into, (std::vector<float>{5, 7, 3}));
  EXPECT_EQ(from, (std::vector<float>{0, 0, 6}));
}

}  // namespace
}  // namespace sluice::sum_tree_test
