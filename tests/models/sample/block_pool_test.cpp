#include "models/sample/block_pool.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::models::block_pool_test {
namespace {

using Table = std::vector<int32_t>;

TEST(BlockPool, HandsEachBlockToOneSequence) {
  BlockPool pool(10);
  std::vector<Table> tables(5);
  std::set<int32_t> seen;
  for (Table& table : tables) pool.extend(table, 2);
  for (const Table& table : tables) seen.insert(table.begin(), table.end());
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(pool.free(), 0);
}

TEST(BlockPool, ABlockIsFreeWhenNobodyHoldsItAnyMore) {
  BlockPool pool(2);
  const int32_t block = pool.take();
  pool.share(block);
  EXPECT_EQ(pool.references(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.in_use(), 1);
  pool.release(block);
  EXPECT_EQ(pool.in_use(), 0);
  EXPECT_THROW(pool.release(block), InternalError);
}

TEST(BlockPool, BlocksThatWereUsedAreUsedAgainBeforeThoseThatNeverWere) {
  BlockPool pool(100);
  Table table;
  for (int round = 0; round < 50; ++round) {
    pool.extend(table, 4);
    for (const int32_t block : table) EXPECT_LT(block, 4);
    pool.release(table);
  }
}

TEST(BlockPool, AKeptBlockIsTakenAfterAllOthersTheOldestFirst) {
  BlockPool pool(4);
  Table table;
  pool.extend(table, 4);
  pool.keep(table[1]);
  pool.keep(table[3]);
  const Table blocks = table;
  pool.release(blocks[3]);
  pool.release(blocks[1]);
  pool.release(blocks[0]);
  pool.release(blocks[2]);
  EXPECT_EQ(pool.free(), 4);
  EXPECT_EQ((Table{pool.take(), pool.take(), pool.take(), pool.take()}), (Table{blocks[2], blocks[0], blocks[3], blocks[1]}));
  EXPECT_FALSE(pool.kept(blocks[3]));
}

TEST(BlockPool, AFreeKeptBlockComesBackByBeingShared) {
  BlockPool pool(2);
  const int32_t block = pool.take();
  pool.keep(block);
  pool.release(block);
  pool.share(block);
  EXPECT_EQ(pool.references(block), 1);
  EXPECT_NE(pool.take(), block);
  EXPECT_THROW(pool.take(), InternalError);
}

TEST(BlockPool, AForgottenBlockIsLikeAnyOther) {
  BlockPool pool(3);
  const int32_t block = pool.take();
  pool.keep(block);
  pool.release(block);
  pool.forget(block);
  EXPECT_THROW(pool.share(block), InternalError);
  EXPECT_EQ(pool.take(), block);
}

TEST(BlockPool, APeakBeginsWithWhatIsInUseWhenTheLastOneWasTaken) {
  BlockPool pool(10);
  Table a, b;
  pool.extend(a, 3);
  pool.extend(b, 1);
  pool.release(a);
  EXPECT_EQ(pool.take_peak(), 4);
  EXPECT_EQ(pool.take_peak(), 1);
  pool.extend(b, 2);
  EXPECT_EQ(pool.take_peak(), 2);
}

TEST(BlockPool, AnExhaustedPoolIsABugAndLeavesTheTableAsItWas) {
  BlockPool pool(2);
  Table a, b;
  pool.extend(a, 1);
  EXPECT_THROW(pool.extend(b, 2), InternalError);
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(pool.free(), 1);
}

// Random takes, shares, releases, keeps and forgets beside a plain count of who holds what.
TEST(BlockPool, CountsWhatAPlainCountCounts) {
  RandomStream random(3, 0);
  BlockPool pool(12);
  std::vector<int32_t> references(12), held;
  std::vector<bool> kept(12);
  for (int step = 0; step < 20000; ++step) {
    const auto one_held = [&] { return static_cast<size_t>(random.below(held.size())); };
    const auto any = static_cast<int32_t>(random.below(12));
    switch (random.below(5)) {
      case 0:
        if (pool.free() == 0) break;
        held.push_back(pool.take());
        ASSERT_EQ(references[held.back()]++, 0);
        kept[held.back()] = false;
        break;
      case 1:
        if (references[any] == 0 && !kept[any]) break;
        pool.share(any);
        held.push_back(any);
        ++references[any];
        break;
      case 2:
        if (held.empty()) break;
        std::swap(held[one_held()], held.back());
        pool.release(held.back());
        --references[held.back()];
        held.pop_back();
        break;
      case 3:
        if (references[any] == 0) break;
        pool.keep(any);
        kept[any] = true;
        break;
      default:
        pool.forget(any);
        kept[any] = false;
    }
    int64_t in_use = 0;
    for (int32_t block = 0; block < 12; ++block) {
      ASSERT_EQ(pool.references(block), references[block]);
      ASSERT_EQ(pool.kept(block), kept[block]);
      in_use += references[block] > 0;
    }
    ASSERT_EQ(pool.in_use(), in_use);
  }
}

}  // namespace
}  // namespace sluice::models::block_pool_test
