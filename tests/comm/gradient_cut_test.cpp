#include "comm/gradient_cut.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "base/error.h"

namespace sluice::comm::gradient_cut_test {
namespace {

constexpr int64_t kBlock = GradientCut::kBlock;

TEST(GradientCut, OwnersAddEveryFloatOnce) {
  for (const int size : {1, 2, 3, 4, 7}) {
    const GradientCut cut({0, size}, size, /*most_staged=*/0);
    for (const int64_t count : {int64_t{0}, int64_t{1}, kBlock, kBlock + 1, 5 * kBlock - 1, 100 * kBlock + 3}) {
      int64_t next = 0;
      for (int owner = 0; owner < size; ++owner) {
        for (int64_t round = 0; round < cut.rounds(count); ++round) {
          const FloatRange piece = cut.piece(count, owner, round);
          EXPECT_EQ(piece.begin, next) << size << " ranks, " << count << " floats, owner " << owner << ", round " << round;
          next = piece.end;
        }
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(GradientCut, OwnersBeginAtBlocks) {
  const GradientCut cut({0, 4}, 4, 1 << 20);
  for (int owner = 0; owner < 4; ++owner)
    EXPECT_EQ(cut.piece(9 * kBlock + 5, owner, 0).begin, std::min(owner * 3 * kBlock, 9 * kBlock + 5));
}

TEST(GradientCut, ALastOwnerMayHaveNothing) {
  const GradientCut cut({0, 3}, 3, 1 << 20);
  EXPECT_EQ(cut.piece(15, 0, 0), (FloatRange{0, 15}));
  EXPECT_EQ(cut.piece(15, 1, 0).size(), 0);
  EXPECT_EQ(cut.piece(15, 2, 0).size(), 0);
}

TEST(GradientCut, RanksHaveThePartsOfTheTree) {
  const GradientCut cut({0, 2}, 6, 1 << 20);  // slots 0 1 | 2 and 3 | 4 5
  EXPECT_EQ(cut.parts(), 4);
  EXPECT_EQ(cut.parts_of(0), 2);
  EXPECT_EQ(cut.first_part(1), 2);
}

TEST(GradientCut, PartsOfAllRoundsFitIntoWhatMayBeStaged) {
  for (const int size : {2, 8, 64}) {
    const GradientCut cut({0, size}, 3 * size, 16 << 20);
    EXPECT_LE(GradientCut::kRounds * cut.parts() * cut.piece_size(), 16 << 20);
  }
}

// In a ring each rank sends 2 (size - 1) / size of the gradient.
TEST(GradientCut, ARankSendsHardlyMoreThanInARing) {
  const int64_t count = 16'000'003;
  for (const int size : {2, 3, 4, 7, 16}) {
    const GradientCut cut({0, size}, size, 16 << 20);
    for (int rank = 0; rank < size; ++rank) {
      int64_t sent = 0;
      for (int64_t round = 0; round < cut.rounds(count); ++round)
        for (int owner = 0; owner < size; ++owner)
          sent += cut.piece(count, owner, round).size() * (owner == rank ? size - 1 : cut.parts_of(rank));
      EXPECT_LE(static_cast<double>(sent), 1.05 * 2 * count * (size - 1) / size) << "rank " << rank << " of " << size;
    }
  }
}

TEST(GradientCut, RefusesSlotsThatRanksCannotShare) { EXPECT_THROW(GradientCut({0, 3}, 4, 1 << 20), InternalError); }

}  // namespace
}  // namespace sluice::comm::gradient_cut_test
