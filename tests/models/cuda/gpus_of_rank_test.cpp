#include "models/cuda/gpus_of_rank.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::models::gpus_of_rank_test {
namespace {

WorldEnvironment rank_of(int local_rank, int local_size) {
  return {.rank = local_rank, .size = local_size, .local_rank = local_rank, .local_size = local_size, .host = {}, .from = {}};
}

TEST(GpusOfRank, AreSharedOutOneBehindTheOther) {
  EXPECT_EQ(gpus_of_rank(rank_of(0, 2), {}, 8), "0,1,2,3");
  EXPECT_EQ(gpus_of_rank(rank_of(1, 2), {}, 8), "4,5,6,7");
  EXPECT_EQ(gpus_of_rank(rank_of(5, 8), {}, 8), "5");
  EXPECT_EQ(gpus_of_rank(rank_of(2, 3), {}, 8), "4,5") << "two are left over";
}

TEST(GpusOfRank, AreThoseOfWhoeverStartedIt) {
  EXPECT_EQ(gpus_of_rank(rank_of(1, 2), "3,1,GPU-8932f937,0", 4), "GPU-8932f937,0");
  EXPECT_EQ(gpus_of_rank(rank_of(1, 2), "7,2,no such one", 2), "2") << "the driver ends at what it does not know";
  EXPECT_EQ(gpus_of_rank(rank_of(3, 8), "3", 1), std::nullopt) << "it is bound already";
}

TEST(GpusOfRank, WithFewerGpusThanRanksTheFirstHaveOne) {
  EXPECT_EQ(gpus_of_rank(rank_of(1, 4), {}, 2), "1");
  EXPECT_EQ(gpus_of_rank(rank_of(2, 4), {}, 2), "");
  EXPECT_EQ(gpus_of_rank(rank_of(0, 2), {}, 1), "0");
  EXPECT_EQ(gpus_of_rank(rank_of(1, 2), {}, 1), "");
}

TEST(GpusOfRank, StayWhereThereIsNothingToShare) {
  EXPECT_EQ(gpus_of_rank(rank_of(0, 1), {}, 8), std::nullopt);
  EXPECT_EQ(gpus_of_rank(rank_of(1, 2), {}, 0), std::nullopt);
}

TEST(GpusOfRank, NoGpuIsOfTwoRanks) {
  for (int there = 1; there <= 9; ++there) {
    for (int ranks = 2; ranks <= 9; ++ranks) {
      std::set<char> seen;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const char c : gpus_of_rank(rank_of(rank, ranks), {}, there).value_or("")) {
          EXPECT_TRUE(c == ',' || seen.insert(c).second) << there << " GPUs, rank " << rank << " of " << ranks;
        }
      }
      EXPECT_EQ(static_cast<int>(seen.size()), there >= ranks ? there / ranks * ranks : there);
    }
  }
}

}  // namespace
}  // namespace sluice::models::gpus_of_rank_test
