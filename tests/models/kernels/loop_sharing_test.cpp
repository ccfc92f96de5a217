#include "models/kernels/loop_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice::models::loop_sharing_test {
namespace {

constexpr int64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;

/// A thread that makes one loop after another. One that is shared takes `shared_ns`, one alone the 100 us that there are to work.
struct Thread {
  static constexpr int64_t kWork = 100 * kMicrosecond;

  void run_until(int64_t end_ns) {
    alone = loops = measured = 0;
    for (; now_ns < end_ns; ++loops) {
      const LoopSharing::Loop loop = sharing.next(now_ns);
      const int64_t took = loop == LoopSharing::Loop::kAlone ? kWork : shared_ns;
      now_ns += took;
      alone += loop == LoopSharing::Loop::kAlone;
      measured += loop == LoopSharing::Loop::kMeasured;
      if (loop == LoopSharing::Loop::kMeasured) sharing.measured(now_ns, took, kWork);
    }
  }

  LoopSharing sharing;
  int64_t shared_ns = 0;
  int64_t now_ns = 0, loops = 0, alone = 0, measured = 0;
};

TEST(LoopSharing, GoesOnWhileItPays) {
  Thread thread{.shared_ns = 60 * kMicrosecond};
  thread.run_until(1000 * kMillisecond);
  EXPECT_EQ(thread.alone, 0);
  EXPECT_LE(thread.measured, thread.loops / 8 + 1) << "to measure costs";
}

TEST(LoopSharing, MeasuresEachLoopOfARound) {
  for (const int64_t round : {2, 3, 4, 8, 10, 24}) {
    LoopSharing sharing;
    std::vector<int> measured(static_cast<size_t>(round));
    for (int64_t loop = 0; loop < 100 * round; ++loop) {
      if (sharing.next(loop * kMicrosecond) != LoopSharing::Loop::kMeasured) continue;
      sharing.measured(loop * kMicrosecond, 1, 2);
      ++measured[static_cast<size_t>(loop % round)];
    }
    EXPECT_THAT(measured, ::testing::Each(::testing::Ge(9))) << "rounds of " << round;
  }
}

TEST(LoopSharing, LosesLittleToOneThreadBesideANeighbour) {
  Thread thread{.shared_ns = 250 * kMicrosecond};
  thread.run_until(5000 * kMillisecond);
  const double rate = static_cast<double>(thread.loops) * Thread::kWork / static_cast<double>(5000 * kMillisecond);
  EXPECT_GT(rate, 0.97);
}

TEST(LoopSharing, IsTriedAgainAndGoesOnOnceTheNeighbourIsGone) {
  Thread thread{.shared_ns = 250 * kMicrosecond};
  thread.run_until(5000 * kMillisecond);
  thread.shared_ns = 60 * kMicrosecond;
  thread.run_until(7000 * kMillisecond);
  thread.run_until(8000 * kMillisecond);
  EXPECT_EQ(thread.alone, 0);
}

TEST(LoopSharing, OfOneLongLoopThatWasDisturbedIsNotJudgedForever) {
  Thread thread{.shared_ns = 60 * kMicrosecond};
  thread.sharing.measured(0, 30 * kMillisecond, 10 * kMillisecond);
  thread.run_until(200 * kMillisecond);
  EXPECT_GT(thread.alone, 0);
  thread.run_until(1000 * kMillisecond);
  EXPECT_EQ(thread.alone, 0);
}

}  // namespace
}  // namespace sluice::models::loop_sharing_test
