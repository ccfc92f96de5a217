#include "comm/weights/common_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::common_memory_test {
namespace {

using testing::in_threads;

constexpr int kRanks = 3;

class CommonMemoryTest : public ::testing::Test {
 protected:
  static engine::SharingRanks sharing(int place) {
    return {.place = place, .members = {0, 1, 2}, .group = 0, .counterparts = {place}};
  }

  CommonMemoryOver connected(int rank, bool shares_memory = true) {
    const engine::World world{rank, kRanks};
    return CommonMemoryOver(sharing(rank), meet_peers(*store_, "common_memory", world, {.shares_memory = shares_memory}),
                            give_up_.get_token());
  }

  const c10::intrusive_ptr<c10d::HashStore> store_ = c10::make_intrusive<c10d::HashStore>();
  std::stop_source give_up_;
};

TEST_F(CommonMemoryTest, IsTheSameOnAllRanks) {
  const auto said = in_threads(kRanks, [&](int rank) {
    CommonMemoryOver memory = connected(rank);
    const auto small = memory.get("small", 16), large = memory.get("large", 1 << 20);
    EXPECT_TRUE(std::all_of(large.get(), large.get() + (1 << 20), [](std::byte b) { return b == std::byte{0}; }));
    memory.meet();
    small.get()[rank] = large.get()[1000 * rank] = std::byte(rank + 1);
    memory.meet();
    for (int other = 0; other < kRanks; ++other) {
      EXPECT_EQ(small.get()[other], std::byte(other + 1));
      EXPECT_EQ(large.get()[1000 * other], std::byte(other + 1));
    }
    memory.meet();
  });
  EXPECT_EQ(said, std::vector<std::string>(kRanks));
}

// What one rank has written before, all see afterwards, however often and however late some come.
TEST_F(CommonMemoryTest, NobodyPassesBeforeAllHaveCome) {
  std::atomic<int> come = 0;
  const auto said = in_threads(kRanks, [&](int rank) {
    CommonMemoryOver memory = connected(rank);
    for (int round = 1; round <= 50; ++round) {
      std::this_thread::sleep_for(std::chrono::microseconds(137 * ((rank + round) % kRanks)));
      ++come;
      memory.meet();
      EXPECT_GE(come, round * kRanks);
    }
    memory.meet();
  });
  EXPECT_EQ(said, std::vector<std::string>(kRanks));
}

TEST_F(CommonMemoryTest, OutlivesWhoeverHasMadeIt) {
  std::vector<std::shared_ptr<std::byte>> handles(kRanks);
  const auto said = in_threads(kRanks, [&](int rank) {
    CommonMemoryOver memory = connected(rank);
    handles[static_cast<size_t>(rank)] = memory.get("weights", 4096);
    memory.meet();
  });
  EXPECT_EQ(said, std::vector<std::string>(kRanks));
  handles[0].get()[17] = std::byte{42};
  handles[0].reset();
  EXPECT_EQ(handles[2].get()[17], std::byte{42});
}

TEST_F(CommonMemoryTest, IsRefusedBetweenHosts) {
  const auto said = in_threads(kRanks, [&](int rank) { connected(rank, /*shares_memory=*/false); });
  const std::string why = ", and with shard = \"parameters\" all ranks that train have weights in common";
  EXPECT_EQ(said[0], "rank 1 is on another host than rank 0" + why);
  EXPECT_EQ(said[2], "rank 0 is on another host than rank 2" + why);
}

TEST_F(CommonMemoryTest, ARankThatIsGoneIsNamed) {
  const auto said = in_threads(kRanks, [&](int rank) {
    CommonMemoryOver memory = connected(rank);
    if (rank == 1) return;
    memory.meet();
  });
  EXPECT_EQ(said[0], "rank 1 is gone, with which this one has memory in common");
  EXPECT_EQ(said[2], "rank 0 is gone, with which this one has memory in common");
}

TEST_F(CommonMemoryTest, AWaitEndsWithTheRun) {
  std::atomic<int> waiting = 0;
  std::jthread ends([&] {
    while (waiting < kRanks - 1) std::this_thread::yield();
    give_up_.request_stop();
  });
  const auto said = in_threads(kRanks, [&](int rank) {
    CommonMemoryOver memory = connected(rank);
    ++waiting;
    if (rank > 0) return memory.meet();
    while (!give_up_.stop_requested()) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // rank 0 stays, so that the others see the end and not it go
  });
  EXPECT_EQ(said[1], "the run has ended before all ranks had the memory that they have in common");
  EXPECT_EQ(said[2], "the run has ended before all ranks had the memory that they have in common");
}

TEST_F(CommonMemoryTest, RanksThatAskForOtherThingsAreABug) {
  const auto said = in_threads(kRanks, [&](int rank) {
    CommonMemoryOver memory = connected(rank);
    memory.get(rank == 2 ? "gradients" : "weights", 4096);
  });
  EXPECT_EQ(said[1], "");
  EXPECT_NE(said[2].find("rank 0 has other memory in common than gradients"), std::string::npos) << said[2];
}

}  // namespace
}  // namespace sluice::comm::common_memory_test
