#include "engine/schedule/stages/thread_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace sluice::engine::executor_test {
namespace {

// One executor, and tasks made of functions.
class Place {
 public:
  explicit Place(std::function<void()> on_start = {}) : executor_(0, "cpu", activity_, std::move(on_start)) {}

  void submit(int node, int64_t sequence, std::function<void()> function) {
    tasks_.emplace_back(activity_, std::move(function));
    executor_.submit({.node = node, .task = &tasks_.back(), .packet = {.sequence = sequence, .iteration = {}, .batch = nullptr}});
  }

  ThreadExecutor& executor() { return executor_; }
  Activity& activity() { return activity_; }

 private:
  struct FunctionTask final : Task {
    FunctionTask(Activity& activity_, std::function<void()> function_) : activity(activity_), function(std::move(function_)) {}
    void run(Packet) override {
      function();
      activity.end_unseen(0);
    }
    Activity& activity;
    std::function<void()> function;
  };

  static Plan small_plan() {
    Plan plan;
    plan.nodes.resize(4);
    plan.executors = {{"cpu", 1}};
    return plan;
  }

  const Plan plan_ = small_plan();
  SteadyClock clock_;
  Activity activity_{plan_, clock_, {}};
  std::deque<FunctionTask> tasks_;
  ThreadExecutor executor_;
};

// Work that keeps the executor busy until it is released, so that what is submitted meanwhile is queued.
class Blocker {
 public:
  explicit Blocker(Place& place) {
    place.submit(0, 0, [this] {
      started_.set_value();
      released_.get_future().wait();
    });
    started_.get_future().wait();
  }
  void release() { released_.set_value(); }

 private:
  std::promise<void> started_, released_;
};

TEST(ThreadExecutor, TheMostDownstreamGoesFirstAndTheOldestOfThem) {
  std::vector<std::string> ran;
  std::promise<void> done;
  Place place;
  Blocker blocker(place);
  place.submit(1, 5, [&] { ran.push_back("score 5"); });
  place.submit(3, 4, [&] { ran.push_back("train 4"); });
  place.submit(1, 3, [&] { ran.push_back("score 3"); });
  place.submit(3, 2, [&] { ran.push_back("train 2"); });
  place.submit(0, 9, [&] { done.set_value(); });
  EXPECT_EQ(place.executor().queued(), 5u);
  EXPECT_EQ(place.activity().current(0).node, 0);
  blocker.release();
  done.get_future().wait();
  EXPECT_THAT(ran, ::testing::ElementsAre("train 2", "train 4", "score 3", "score 5"));
}

// Made before its executor, which asks it until the end.
class CountingStepper final : public Stepper {
 public:
  int path() const override { return 0; }
  bool ready() override { return steps < 3; }
  void begin_step() override { activity->begin(0, 0); }
  void end_step() override {
    activity->end_unseen(0);
    if (++steps == 3) done.set_value();
  }
  Activity* activity = nullptr;
  int steps = 0;
  std::promise<void> done;
};

void add(CountingStepper& stepper, Place& place) {
  stepper.activity = &place.activity();
  place.executor().add_stepper(&stepper);
}

TEST(ThreadExecutor, StepsAsLongAsTheStepperIsReady) {
  CountingStepper stepper;
  Place place;
  add(stepper, place);
  place.executor().notify();
  stepper.done.get_future().wait();
  EXPECT_EQ(stepper.steps, 3);
}

TEST(ThreadExecutor, QueuedWorkGoesBeforeAStep) {
  CountingStepper stepper;
  Place place;
  int steps_seen = -1;
  {
    Blocker blocker(place);
    add(stepper, place);
    place.submit(1, 0, [&] { steps_seen = stepper.steps; });
    blocker.release();
    stepper.done.get_future().wait();
  }
  EXPECT_EQ(steps_seen, 0);
}

TEST(ThreadExecutor, RunsItsStartOnItsOwnThread) {
  std::promise<std::thread::id> start, work;
  Place place([&] { start.set_value(std::this_thread::get_id()); });
  place.submit(0, 0, [&] { work.set_value(std::this_thread::get_id()); });
  const auto id = work.get_future().get();
  EXPECT_EQ(id, start.get_future().get());
  EXPECT_NE(id, std::this_thread::get_id());
}

}  // namespace
}  // namespace sluice::engine::executor_test
