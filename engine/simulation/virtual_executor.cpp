#include "engine/simulation/virtual_executor.h"

#include <algorithm>
#include <limits>
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

void run_to_the_end(const std::vector<std::unique_ptr<VirtualExecutor>>& executors, VirtualClock& clock,
                    const std::function<void(int64_t begin_ns, int64_t end_ns)>& passed) {
  using State = VirtualExecutor::State;
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  for (;;) {
    int64_t next = kNever;
    for (const auto& executor : executors) {
      if (executor->state() == State::kIdle) executor->begin();
      if (executor->state() != State::kIdle) next = std::min(next, executor->until_ns());
    }
    if (next == kNever) return;
    if (next > clock.now_ns()) passed(clock.now_ns(), next);
    clock.set(next);
    for (const auto& executor : executors) {
      if (executor->state() != State::kIdle && executor->until_ns() == next) executor->end();
    }
  }
}

}  // namespace sluice::engine
