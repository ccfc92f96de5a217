#include "base/float_range.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

TEST(OwnedFloats, OfAllRanksAreAllFloatsInWholeBlocks) {
  for (const int ranks : {1, 2, 3, 7, 64}) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, kFloatsOfABlock, kFloatsOfABlock + 1, 100 * kFloatsOfABlock + 3}) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const FloatRange own = owned_floats(count, rank, ranks);
        EXPECT_EQ(own.begin, next) << count << " floats, rank " << rank << " of " << ranks;
        EXPECT_TRUE(own.begin == count || own.begin % kFloatsOfABlock == 0);
        EXPECT_LE(own.size(), owned_floats(count, 0, ranks).size());
        next = own.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(OwnedFloats, AreOfOneOfTheRanks) {
  EXPECT_THROW(owned_floats(10, 2, 2), InternalError);
  EXPECT_THROW(owned_floats(10, -1, 2), InternalError);
}

}  // namespace
}  // namespace sluice
