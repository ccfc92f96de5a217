#include "models/memory/tensor_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>
#include <thread>
#include <vector>

#include "base/numbers/random.h"
#include "models/memory/tensor_memory.h"

namespace sluice::models::tensor_pool_test {
namespace {

constexpr size_t kMega = 1 << 20;

TEST(TensorPool, ServesABlockAgain) {
  TensorPool pool;
  pool.keep_freed();
  const void* first = nullptr;
  {
    const c10::DataPtr data = pool.allocate(3 * kMega);
    first = data.get();
    std::memset(data.get(), 1, 3 * kMega);
  }
  EXPECT_EQ(pool.used_bytes(), 0U);
  EXPECT_EQ(pool.allocate(3 * kMega).get(), first);
  EXPECT_EQ(pool.allocate(29 * kMega / 10).get(), first) << "a little less than what there is";
  EXPECT_NE(pool.allocate(kMega).get(), first) << "much less";
}

TEST(TensorPool, GivesBackAtOnceWhatIsFreedBeforeTheWorkBegins) {
  TensorPool pool;
  { const c10::DataPtr old = pool.allocate(8 * kMega); }
  EXPECT_EQ(pool.held_bytes(), 0U);
}

TEST(TensorPool, RoundsWhatLastsToPagesAlone) {
  TensorPool pool;
  const c10::DataPtr weight = pool.allocate(33 * kMega);
  EXPECT_LT(pool.held_bytes(), 33 * kMega + 2 * 4096);
}

TEST(TensorPool, HoldsNoReserveForWhatLasts) {
  TensorPool pool;
  const c10::DataPtr weights = pool.allocate(640 * kMega);
  pool.keep_freed();
  const size_t lasting = pool.held_bytes();
  { const c10::DataPtr pass = pool.allocate(8 * kMega); }
  const c10::DataPtr larger = pool.allocate(16 * kMega);
  EXPECT_EQ(pool.held_bytes() - lasting, pool.used_bytes() - lasting) << "a sixteenth of 16 MB is too little to keep 8 MB in";
}

TEST(TensorPool, LeavesSmallTensorsToMalloc) {
  TensorPool pool;
  EXPECT_EQ(pool.allocate(0).get(), nullptr);
  const c10::DataPtr data = pool.allocate(1000);
  std::memset(data.get(), 1, 1000);
  EXPECT_EQ(pool.held_bytes(), 0U);
}

TEST(TensorPool, HoldsLittleMoreThanWasInUseAtATime) {
  TensorPool pool;
  pool.keep_freed();
  RandomStream random(1, 0);
  std::deque<c10::DataPtr> live;
  size_t most = 0;
  for (int i = 0; i < 3000; ++i) {
    const size_t bytes = 64 * 1024 + random.below(4 * kMega);
    live.push_back(pool.allocate(bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(live.back().get()) % 64, 0U);
    static_cast<char*>(live.back().get())[bytes - 1] = 1;
    most = std::max(most, pool.used_bytes());
    ASSERT_LE(pool.held_bytes(), most + most / 16);
    while (!live.empty() && random.below(2) == 0) live.pop_front();
  }
  live.clear();
  EXPECT_EQ(pool.used_bytes(), 0U);
}

// The passes of micro-batches that differ by some tokens: large tensors that are kept until the end, and others on the way there
// and back.
TEST(TensorPool, SoonHasAllThatMicroBatchesTake) {
  TensorPool pool;
  pool.keep_freed();
  RandomStream random(3, 0);
  std::set<const void*> seen;
  size_t later = 0;
  for (int pass = 0; pass < 100; ++pass) {
    const size_t tokens = 4400 + random.below(100);
    const auto allocate = [&](size_t of_token) {
      c10::DataPtr data = pool.allocate(tokens * of_token);
      if (seen.insert(data.get()).second && pass >= 30) ++later;
      return data;
    };
    std::deque<c10::DataPtr> kept;
    for (int layer = 0; layer < 4; ++layer) {
      for (const size_t of_token : {2048, 2048, 1024, 512, 512}) kept.push_back(allocate(of_token));
      const c10::DataPtr all_heads = allocate(3072), chunk = allocate(600);
    }
    for (int layer = 0; layer < 4; ++layer) {
      const c10::DataPtr wide = allocate(4096), gradient = allocate(1024);
      kept.resize(kept.size() - 5);
    }
    const c10::DataPtr step = allocate(1500), logits = allocate(97 * 4);
  }
  EXPECT_EQ(later, 0U) << "of " << seen.size();
}

TEST(TensorPool, SharesNoBlockBetweenThreads) {
  TensorPool pool;
  pool.keep_freed();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      RandomStream random(2, static_cast<uint64_t>(t));
      for (int i = 0; i < 300; ++i) {
        const size_t bytes = 64 * 1024 + random.below(256 * 1024);
        const c10::DataPtr data = pool.allocate(bytes);
        std::memset(data.get(), t, bytes);
        std::this_thread::yield();
        for (size_t at = 0; at < bytes; at += 4096) wrong += static_cast<char*>(data.get())[at] != t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(pool.used_bytes(), 0U);
}

TEST(TensorPool, IsSeenByWhoCountsTensors) {
  std::thread([] {
    TensorPool pool;
    TensorMemory memory;
    memory.watch_this_thread();
    {
      const c10::DataPtr data = pool.allocate(kMega + 5);
      EXPECT_EQ(memory.live(), static_cast<int64_t>(kMega + 5));
    }
    EXPECT_EQ(memory.live(), 0);
  }).join();
}

TEST(TensorPool, SaysThatThereIsNoMemory) {
  TensorPool pool;
  EXPECT_THROW(pool.allocate(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(pool.held_bytes(), 0U);
}

}  // namespace
}  // namespace sluice::models::tensor_pool_test
