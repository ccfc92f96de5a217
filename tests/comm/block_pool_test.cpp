#include "comm/parcels/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/numbers/random.h"

namespace sluice::comm::block_pool_test {
namespace {

using ::testing::ElementsAre;

constexpr size_t kPart = size_t{100} << 10;  // some pages

void write_all(Block& block, size_t bytes) { std::memset(block.memory.data(), 7, bytes); }

TEST(BlockPool, GivesTheSameBlockAgain) {
  BlockPool pool;
  const std::byte* const first = pool.take(kPart)->memory.data();
  EXPECT_EQ(pool.take(kPart)->memory.data(), first);
  EXPECT_EQ(pool.most_held(), kPart);
}

TEST(BlockPool, LetsGoOfWhatIsFreeBeforeItHoldsMoreThanWasGranted) {
  BlockPool pool;
  const uint32_t small = pool.take(kPart)->id;
  const auto large = pool.take(30 * kPart);  // the small one is large enough, but has no room
  const auto gone = pool.take_gone();
  EXPECT_EQ(pool.most_held(), 30 * kPart);
  EXPECT_EQ(gone.size() + (large->id == small ? 1 : 0), 1);
}

TEST(BlockPool, ClearsWhatIsBehindAGrantBeforeItHoldsMore) {
  BlockPool pool;
  {
    const auto whole = pool.take(2 * kPart);
    write_all(*whole, 2 * kPart);
  }
  const auto first = pool.take(kPart), second = pool.take(kPart);
  EXPECT_EQ(pool.most_held(), 2 * kPart);
  EXPECT_EQ(first->memory.data()[kPart - 1], std::byte{7});
  EXPECT_EQ(first->memory.data()[2 * kPart - 1], std::byte{0});
}

TEST(BlockPool, SaysWhoKnewABlockThatIsGone) {
  BlockPool pool;
  {
    const auto first = pool.take(kPart);
    first->known_to = {2, 5};
  }
  const auto second = pool.take(30 * kPart);
  const auto gone = pool.take_gone();
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_THAT(gone.front().known_to, ElementsAre(2, 5));
  EXPECT_TRUE(pool.take_gone().empty());
}

TEST(BlockPool, MayEndBeforeItsBlocks) {
  auto pool = std::make_unique<BlockPool>();
  const auto block = pool->take(kPart);
  pool.reset();
  write_all(*block, kPart);
  EXPECT_EQ(block->memory.data()[kPart - 1], std::byte{7});
}

TEST(BlockPool, NeverHoldsMoreThanWasGrantedAtOneTime) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomStream random(seed, 1);
    BlockPool pool;
    std::vector<std::shared_ptr<Block>> used;
    size_t granted = 0, most = 0;
    for (int i = 0; i < 200; ++i) {
      if (!used.empty() && random.below(2) == 0) {
        std::swap(used[random.below(used.size())], used.back());
        granted -= used.back()->granted;
        used.pop_back();
      } else {
        const size_t bytes = 1 + random.below(2 << 20);
        granted += bytes;
        most = std::max(most, granted);
        used.push_back(pool.take(bytes));
      }
      ASSERT_LE(pool.most_held(), most) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sluice::comm::block_pool_test
