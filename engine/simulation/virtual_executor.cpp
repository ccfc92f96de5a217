#include "engine/simulation/virtual_executor.h"

#include <utility>

namespace sluice::engine {

void VirtualExecutor::begin() {
  if (std::optional<Work> work = queue_.pop()) {
    work_ = std::move(*work);
    parts_.activity.begin(parts_.index, work_.node);
    be(State::kWorks, parts_.costs.of_work_ns(work_));
  } else if ((stepping_ = steppers_.next()) != nullptr) {
    stepping_->begin_step();
    be(State::kSteps, parts_.costs.of_step_ns(stepping_->path(), parts_.next_step(stepping_->path())));
  }
}

void VirtualExecutor::end() {
  const State ended = std::exchange(state_, State::kIdle);
  if (ended == State::kPauses) return;
  if (ended == State::kWorks)
    work_.task->run(std::exchange(work_.packet, {}));
  else
    stepping_->end_step();
  if (busy_ns_ > 0 && parts_.gap_ns > 0) be(State::kPauses, parts_.gap_ns);
}

void VirtualExecutor::be(State state, int64_t for_ns) {
  state_ = state;
  busy_ns_ = for_ns;
  until_ns_ = parts_.clock.now_ns() + for_ns;
}

}  // namespace sluice::engine
