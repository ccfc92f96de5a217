#include "models/kernels/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/models/allocation_counter.h"

namespace sluice::models {
namespace {

class ParallelRanges : public testing::Test {
 protected:
  ~ParallelRanges() override { at::set_num_threads(had_); }

  const int had_ = at::get_num_threads();
};

TEST_F(ParallelRanges, CoverEveryIndexOnceInRangesOfWholeGrains) {
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
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
        EXPECT_LE(ranges, threads);
      }
  }
}

TEST_F(ParallelRanges, OfPiecesCoverEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      parallel_pieces(count, [&](int64_t begin, int64_t end) {
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      for (const auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST_F(ParallelRanges, RunOnAsManyThreadsAsLibTorchHas) {
  at::set_num_threads(3);
  std::atomic<int> ranges = 0;
  parallel_ranges(300, 1, [&](int64_t, int64_t) { ++ranges; });
  EXPECT_EQ(ranges, 3);
}

TEST_F(ParallelRanges, OfNothingCallNothing) {
  parallel_ranges(0, 4, [](int64_t, int64_t) { FAIL(); });
}

TEST_F(ParallelRanges, InsideARangeAreOne) {
  at::set_num_threads(2);
  std::atomic<int> inner = 0;
  parallel_ranges(2, 1, [&](int64_t begin, int64_t end) {
    for (; begin < end; ++begin) parallel_ranges(100, 1, [&](int64_t, int64_t) { ++inner; });
  });
  EXPECT_EQ(inner, 2);
}

TEST_F(ParallelRanges, PassAnExceptionOnAndWorkAgain) {
  at::set_num_threads(2);
  const auto fail = [](int64_t begin, int64_t) {
    if (begin > 0) throw std::runtime_error("on another thread");
  };
  EXPECT_THROW(parallel_ranges(10, 1, fail), std::runtime_error);
  std::atomic<int64_t> sum = 0;
  parallel_ranges(10, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, 10);
}

TEST_F(ParallelRanges, KeepWhatTheyHoldBetweenCalls) {
  at::set_num_threads(3);
  std::atomic<int64_t> sum = 0;
  const auto add = [&](int64_t begin, int64_t end) { sum += end - begin; };
  parallel_ranges(30, 1, add);
  std::vector<at::Tensor> others;  // where the first call's memory was, had it been freed
  for (int i = 0; i < 100; ++i) others.push_back(at::full({3}, -1000, at::kLong));
  parallel_ranges(30, 1, add);
  EXPECT_EQ(sum, 60);
}

TEST_F(ParallelRanges, MayBeAskedForByManyThreads) {
  at::set_num_threads(2);
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
  at::set_num_threads(2);
  int64_t a = 1, b = 2, c = 3;
  std::atomic<int64_t> sum = 0;
  const auto work = [&] { parallel_ranges(100, 1, [&](int64_t begin, int64_t end) { sum += (end - begin) * (a + b + c); }); };
  work();
  EXPECT_EQ(allocations_in(work), 0);
  EXPECT_EQ(allocations_in([] { ::operator delete(::operator new(8)); }), 1);  // the counter counts
}

}  // namespace
}  // namespace sluice::models
