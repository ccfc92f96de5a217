#include "engine/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

namespace sluice::engine {
namespace {

// Work that keeps the executor busy until it is released, so that what is submitted meanwhile is queued.
class Blocker {
 public:
  explicit Blocker(Executor& executor) {
    executor.submit(0, 0, [this] {
      started_.set_value();
      released_.get_future().wait();
    });
    started_.get_future().wait();
  }
  void release() { released_.set_value(); }

 private:
  std::promise<void> started_, released_;
};

TEST(Executor, TheMostDownstreamGoesFirstAndTheOldestOfThem) {
  std::vector<std::string> ran;
  std::promise<void> done;
  Executor executor("cpu", {});
  Blocker blocker(executor);
  executor.submit(1, 5, [&] { ran.push_back("score 5"); });
  executor.submit(3, 4, [&] { ran.push_back("train 4"); });
  executor.submit(1, 3, [&] { ran.push_back("score 3"); });
  executor.submit(3, 2, [&] { ran.push_back("train 2"); });
  executor.submit(0, 9, [&] { done.set_value(); });
  blocker.release();
  done.get_future().wait();
  EXPECT_THAT(ran, testing::ElementsAre("train 2", "train 4", "score 3", "score 5"));
}

class CountingStepper final : public Stepper {
 public:
  bool ready() override { return steps < 3; }
  void step() override {
    if (++steps == 3) done.set_value();
  }
  int steps = 0;
  std::promise<void> done;
};

TEST(Executor, StepsAsLongAsTheStepperIsReady) {
  CountingStepper stepper;
  Executor executor("cpu", {});
  executor.set_stepper(&stepper);
  executor.notify();
  stepper.done.get_future().wait();
  EXPECT_EQ(stepper.steps, 3);
}

TEST(Executor, QueuedWorkGoesBeforeAStep) {
  CountingStepper stepper;
  int steps_seen = -1;
  Executor executor("cpu", {});
  {
    Blocker blocker(executor);
    executor.set_stepper(&stepper);
    executor.submit(1, 0, [&] { steps_seen = stepper.steps; });
    blocker.release();
    stepper.done.get_future().wait();
  }
  EXPECT_EQ(steps_seen, 0);
}

TEST(Executor, RunsItsStartOnItsOwnThread) {
  std::promise<std::thread::id> start, work;
  Executor executor("cpu", [&] { start.set_value(std::this_thread::get_id()); });
  executor.submit(0, 0, [&] { work.set_value(std::this_thread::get_id()); });
  const auto id = work.get_future().get();
  EXPECT_EQ(id, start.get_future().get());
  EXPECT_NE(id, std::this_thread::get_id());
}

}  // namespace
}  // namespace sluice::engine
