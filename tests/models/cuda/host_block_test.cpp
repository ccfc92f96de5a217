#include "tests/models/cuda/host_block.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <stdexcept>
#include <vector>

// That the emulation finds what it is there to find.
namespace sluice::tests::host_block_test {
namespace {

constexpr int kThreads = 4 * HostBlock::kLanes;
using Thread = HostBlock::Thread;

// In how many of 50 orders the sum that a block computes through shared memory is right.
int times_right(bool meets) {
  int right = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    std::vector<int> shared(kThreads);
    int sum = 0;
    HostBlock(kThreads, seed).run(0, 0, [&](const Thread& thread) {
      shared[static_cast<size_t>(thread.index())] = thread.index();
      if (meets) thread.meet();
      if (thread.index() == 0) {
        for (const int number : shared) sum += number;
      }
    });
    right += sum == kThreads * (kThreads - 1) / 2 ? 1 : 0;
  }
  return right;
}

TEST(HostBlock, TellsEachThreadWhereItIs) {
  std::vector<int> seen;
  HostBlock(kThreads, 1).run(3, 5, [&](const Thread& thread) {
    seen.push_back(thread.block_x() * 1000 * thread.block_y() + thread.index());
  });
  std::ranges::sort(seen);
  ASSERT_EQ(seen.size(), static_cast<size_t>(kThreads));
  EXPECT_EQ(seen.front(), 15000);
  EXPECT_EQ(seen.back(), 15000 + kThreads - 1);
}

TEST(HostBlock, ShowsWhatOthersWroteOnceTheyHaveMet) {
  EXPECT_EQ(times_right(true), 50);
  EXPECT_LT(times_right(false), 50);
}

TEST(HostBlock, ExchangesWithinAWarp) {
  HostBlock(kThreads, 1).run(0, 0, [&](const Thread& thread) {
    EXPECT_EQ(thread.of_lane_across(1, static_cast<float>(thread.index())), static_cast<float>(thread.index() ^ 1));
    EXPECT_EQ(thread.of_lane_across(16, static_cast<float>(2 * thread.index())), static_cast<float>(2 * (thread.index() ^ 16)));
  });
}

TEST(HostBlock, FindsThreadsThatWaitForEachOther) {
  HostBlock block(kThreads, 1);
  EXPECT_THROW(block.run(0, 0,
                         [](const Thread& thread) {
                           if (thread.index() != 7) thread.meet();
                         }),
               std::logic_error);
  EXPECT_THROW(block.run(0, 0,
                         [](const Thread& thread) {
                           if (thread.index() != 7) thread.of_lane_across(1, 0);
                         }),
               std::logic_error);
  EXPECT_THROW(block.run(0, 0, [](const Thread& thread) { thread.of_lane_across(thread.index() == 7 ? 2 : 1, 0); }),
               std::logic_error);
  EXPECT_NO_THROW(block.run(0, 0, [](const Thread& thread) { thread.meet(); }));
}

}  // namespace
}  // namespace sluice::tests::host_block_test
