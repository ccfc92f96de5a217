// Who waits for the last to leave may destroy what it waited with, at once: a run ends like that.
#include "engine/schedule/state/work_in_progress.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace sluice::engine::work_in_progress_test {
namespace {

using std::chrono::milliseconds;

TEST(WorkInProgress, IsNotOverWhileSomethingIsUnderWay) {
  WorkInProgress work;
  EXPECT_TRUE(work.wait_for(milliseconds(0)));
  work.enter(2);
  work.leave();
  EXPECT_EQ(work.count(), 1);
  EXPECT_FALSE(work.wait_for(milliseconds(0)));
  work.leave();
  EXPECT_TRUE(work.wait_for(milliseconds(0)));
}

// Memory that is gone shows under the sanitizers.
TEST(WorkInProgress, IsDestroyedAsSoonAsNothingIsUnderWay) {
  for (int round = 0; round < 2'000; ++round) {
    auto work = std::make_unique<WorkInProgress>();
    work->enter();
    std::thread last([&left = *work] { left.leave(); });
    while (work->count() > 0) continue;  // at that very moment
    ASSERT_TRUE(work->wait_for(milliseconds(0)));
    work.reset();
    last.join();
  }
}

}  // namespace
}  // namespace sluice::engine::work_in_progress_test
