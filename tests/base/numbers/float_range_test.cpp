#include "base/numbers/float_range.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::float_range_test {
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

TEST(Buckets, AreAllFloatsInOrder) {
  for (const int64_t count : {int64_t{0}, int64_t{1}, kFloatsOfABlock, 2 * kFloatsOfABlock + 1, 6 * kFloatsOfABlock}) {
    int64_t next = 0;
    for (const FloatRange& bucket : buckets_of(count, 2 * kFloatsOfABlock)) {
      EXPECT_EQ(bucket.begin, next);
      EXPECT_TRUE(bucket.size() == 2 * kFloatsOfABlock || bucket.end == count);
      next = bucket.end;
    }
    EXPECT_EQ(next, count);
  }
  EXPECT_THROW(buckets_of(10, kFloatsOfABlock + 1), InternalError);
}

TEST(Buckets, AreEachSharedByAllRanks) {
  const std::vector<FloatRange> buckets = buckets_of(7 * kFloatsOfABlock + 5, 4 * kFloatsOfABlock);
  const std::vector<FloatRange> first = owned_floats(buckets, 0, 2), second = owned_floats(buckets, 1, 2);
  EXPECT_EQ(first, (std::vector<FloatRange>{{0, 2 * kFloatsOfABlock}, {4 * kFloatsOfABlock, 6 * kFloatsOfABlock}}));
  EXPECT_EQ(second, (std::vector<FloatRange>{{2 * kFloatsOfABlock, 4 * kFloatsOfABlock},
                                             {6 * kFloatsOfABlock, 7 * kFloatsOfABlock + 5}}));
  EXPECT_EQ(floats_of(first) + floats_of(second), 7 * kFloatsOfABlock + 5);
}

}  // namespace
}  // namespace sluice::float_range_test
