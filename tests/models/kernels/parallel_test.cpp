#include "models/kernels/parallel.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/process/machine.h"
#include "tests/models/allocation_counter.h"

namespace sluice::models::parallel_test {
namespace {

class ParallelRanges : public ::testing::Test {
 protected:
  ~ParallelRanges() override { set_loop_threads(had_); }

  const int64_t had_ = loop_threads();
};

TEST_F(ParallelRanges, CoverEveryIndexOnceInRangesOfWholeGrains) {
  for (const int threads : {1, 2, 5}) {
    set_loop_threads(threads);
    for (const int64_t count : {1, 2, 7, 64, 1000})
      for (const int64_t grain : {1, 3, 64}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        std::atomic<int> ranges = 0;
        parallel_ranges(count, grain, [&](int64_t begin, int64_t end) {
          ++ranges;
          EXPECT_EQ(begin % grain, 0);
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const auto& times : seen) EXPECT_EQ(times, 1);
        EXPECT_LE(ranges, (count + grain - 1) / grain);
      }
  }
}

TEST_F(ParallelRanges, OfOneThreadAreOneRangeOnThatThread) {
  set_loop_threads(1);
  int ranges = 0;
  parallel_ranges(300, 1, [&](int64_t begin, int64_t end) {
    ++ranges;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 300);
  });
  EXPECT_EQ(ranges, 1);
}

TEST_F(ParallelRanges, AreMoreThanThreadsSoThatOneThatIsSlowHoldsUpLittle) {
  if (available_cores() < 2) GTEST_SKIP() << "needs two cores";
  set_loop_threads(2);
  std::atomic<int> ranges = 0;
  std::atomic<int64_t> longest = 0;
  parallel_ranges(300, 1, [&](int64_t begin, int64_t end) {
    ++ranges;
    for (int64_t seen = longest; seen < end - begin && !longest.compare_exchange_weak(seen, end - begin);) continue;
  });
  EXPECT_GE(ranges, 2 * 2);
  EXPECT_LE(longest, 300 / (2 * 2));
}

TEST_F(ParallelRanges, AreTakenByOtherThreadsWhileOneIsAway) {
  if (available_cores() < 2) GTEST_SKIP() << "needs two cores";
  set_loop_threads(2);
  std::atomic<int64_t> done = 0;
  parallel_ranges(100, 1, [&](int64_t begin, int64_t end) {
    // The first range waits for half of the others: were ranges dealt out beforehand, it would wait for its own.
    while (begin == 0 && done < 50) std::this_thread::yield();
    done += end - begin;
  });
  EXPECT_EQ(done, 100);
}

TEST_F(ParallelRanges, OfNothingCallNothing) {
  parallel_ranges(0, 4, [](int64_t, int64_t) { FAIL(); });
}

TEST_F(ParallelRanges, InsideARangeAreOne) {
  set_loop_threads(2);
  std::atomic<int> inner = 0;
  parallel_ranges(2, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) parallel_ranges(100, 1, [&](int64_t, int64_t) { ++inner; });
  });
  EXPECT_EQ(inner, 2);
}

TEST_F(ParallelRanges, PassAnExceptionOnAndWorkAgain) {
  set_loop_threads(2);
  const auto fail = [](int64_t begin, int64_t) {
    if (begin > 0) throw std::runtime_error("on another thread");
  };
  EXPECT_THROW(parallel_ranges(10, 1, fail), std::runtime_error);
  std::atomic<int64_t> sum = 0;
  parallel_ranges(10, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 10);
}

TEST_F(ParallelRanges, KeepWhatTheyHoldBetweenCalls) {
  set_loop_threads(3);
  std::atomic<int64_t> sum = 0;
  const auto add = [&](int64_t begin, int64_t end) { sum += end - begin; };
  parallel_ranges(30, 1, add);
  std::vector<at::Tensor> others;  // where the first call's memory was, had it been freed
  for (int i = 0; i < 100; ++i) others.push_back(at::full({3}, -1000, at::kLong));
  parallel_ranges(30, 1, add);
  EXPECT_EQ(sum, 60);
}

TEST_F(ParallelRanges, MayBeAskedForByManyThreads) {
  set_loop_threads(2);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) parallel_ranges(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 4 * 50 * 100);
}

TEST_F(ParallelRanges, AllocateNothingAfterTheFirstTime) {
  set_loop_threads(2);
  int64_t a = 1, b = 2, c = 3;
  std::atomic<int64_t> sum = 0;
  const auto work = [&] { parallel_ranges(100, 1, [&](int64_t begin, int64_t end) { sum += (end - begin) * (a + b + c); }); };
  work();
  EXPECT_EQ(allocations_in(work), 0);
  EXPECT_EQ(allocations_in([] { ::operator delete(::operator new(8)); }), 1);  // the counter counts
}

}  // namespace
}  // namespace sluice::models::parallel_test
