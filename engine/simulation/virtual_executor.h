#pragma once

#include <functional>

#include "engine/observe/activity.h"
#include "engine/schedule/stages/executor.h"
#include "engine/simulation/cost_model.h"
#include "engine/simulation/virtual_clock.h"

namespace sluice::engine {

/// An executor without a thread: takes up the same work in the same order as a real one, and is busy with it for as long as it
/// costs. The work itself is done at its end, in no time. One thread.
class VirtualExecutor final : public Executor {
 public:
  struct Parts {
    int index = 0;  // into Plan::executors
    Activity& activity;
    const Clock& clock;
    CostModel& costs;
    std::function<StepWork(int path)> next_step;  // of a path: what the step that has begun amounts to
    int64_t gap_ns = 0;                           // after each piece of work
  };

  explicit VirtualExecutor(Parts parts) : parts_(std::move(parts)) {}

  void add_stepper(Stepper* stepper) override { steppers_.add(stepper); }
  void submit(Work work) override { queue_.push(std::move(work)); }
  void notify() noexcept override {}  // it is asked anyway
  size_t queued() const noexcept override { return queue_.size(); }

  /// Takes up what could start now, if anything. Only when it is not busy.
  void begin();

  /// What it was busy with is done now.
  void end();

  enum class State { kIdle, kWorks, kSteps, kPauses };
  State state() const { return state_; }
  bool works() const { return state_ == State::kWorks || state_ == State::kSteps; }
  int64_t until_ns() const { return until_ns_; }  // unless it is idle

 private:
  void be(State state, int64_t for_ns);

  const Parts parts_;
  WorkQueue queue_;
  Steppers steppers_;
  Stepper* stepping_ = nullptr;
  State state_ = State::kIdle;
  int64_t busy_ns_ = 0;  // what it does now takes so long
  int64_t until_ns_ = 0;
  Work work_;  // that it is busy with
};

}  // namespace sluice::engine
