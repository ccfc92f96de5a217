#include "models/sample/prefix_index.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::models::prefix_index_test {
namespace {

using Tokens = std::vector<int64_t>;

TEST(PrefixIndex, FindsAPieceBehindItsParentOnly) {
  PrefixIndex index(8, 4);
  const auto first = index.insert(PrefixIndex::kRoot, Tokens{1, 2, 3, 4}, 5);
  const auto second = index.insert(first.number, Tokens{1, 2, 3, 4}, 6);
  EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{1, 2, 3, 4})->block, 5);
  EXPECT_EQ(index.find(first.number, Tokens{1, 2, 3, 4})->block, 6);
  EXPECT_FALSE(index.find(second.number, Tokens{1, 2, 3, 4}));
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, Tokens{1, 2, 3}));
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, Tokens{1, 2, 3, 5}));
}

// Four pieces in two buckets: their hashes collide.
TEST(PrefixIndex, PiecesWhoseHashesCollideAreToldApart) {
  PrefixIndex index(4, 2);
  for (int32_t block = 0; block < 4; ++block) index.insert(PrefixIndex::kRoot, Tokens{block, 7}, block);
  for (int32_t block = 0; block < 4; ++block) EXPECT_EQ(index.find(PrefixIndex::kRoot, Tokens{block, 7})->block, block);
  for (int64_t other = 4; other < 100; ++other) EXPECT_FALSE(index.find(PrefixIndex::kRoot, Tokens{other, 7}));
}

TEST(PrefixIndex, WhatFollowedAForgottenPieceIsNotFoundBehindItsSuccessor) {
  PrefixIndex index(8, 2);
  const auto first = index.insert(PrefixIndex::kRoot, Tokens{1, 2}, 0);
  index.insert(first.number, Tokens{3}, 1);
  index.forget(0);
  EXPECT_FALSE(index.find(PrefixIndex::kRoot, Tokens{1, 2}));
  const auto again = index.insert(PrefixIndex::kRoot, Tokens{1, 2}, 0);
  EXPECT_NE(again.number, first.number);
  EXPECT_FALSE(index.find(again.number, Tokens{3}));
}

TEST(PrefixIndex, ABlockHoldsOnePiece) {
  PrefixIndex index(2, 2);
  index.insert(PrefixIndex::kRoot, Tokens{1, 2}, 0);
  EXPECT_THROW(index.insert(PrefixIndex::kRoot, Tokens{3, 4}, 0), InternalError);
  EXPECT_THROW(index.insert(PrefixIndex::kRoot, Tokens{3, 4, 5}, 1), InternalError);
}

// Random pieces come and go, beside a map.
TEST(PrefixIndex, FindsWhatAMapFinds) {
  RandomStream random(5, 0);
  PrefixIndex index(10, 3);
  std::map<std::pair<uint64_t, Tokens>, PrefixIndex::Piece> pieces;
  for (int step = 0; step < 20000; ++step) {
    const auto block = static_cast<int32_t>(random.below(10));
    index.forget(block);
    std::erase_if(pieces, [&](const auto& piece) { return piece.second.block == block; });
    ASSERT_FALSE(index.holds(block));
    uint64_t parent = PrefixIndex::kRoot;
    if (!pieces.empty() && random.below(2) == 0)
      parent = std::next(pieces.begin(), static_cast<int64_t>(random.below(pieces.size())))->second.number;
    Tokens tokens(1 + random.below(3));
    for (int64_t& token : tokens) token = static_cast<int64_t>(random.below(2));
    const auto known = pieces.find({parent, tokens});
    const auto found = index.find(parent, tokens);
    ASSERT_EQ(found.has_value(), known != pieces.end());
    if (found) {
      ASSERT_EQ(found->block, known->second.block);
      ASSERT_EQ(found->number, known->second.number);
    } else {
      pieces[{parent, tokens}] = index.insert(parent, tokens, block);
    }
  }
}

}  // namespace
}  // namespace sluice::models::prefix_index_test
