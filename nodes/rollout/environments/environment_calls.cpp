#include "nodes/rollout/environments/environment_calls.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::nodes {

namespace {

std::string reply_to(const Turn& turn) {
  return "the reply of its environment to turn " + std::to_string(turn.index) + " of sample " + std::to_string(turn.sample) +
         " of group " + std::to_string(turn.group) + " of iteration " + std::to_string(turn.iteration);
}

}  // namespace

EnvironmentCalls::EnvironmentCalls(std::shared_ptr<const Environment> environment, engine::OutsideWork* outside, std::string node)
    : environment_(std::move(environment)), outside_(outside), node_(std::move(node)) {}

EnvironmentCalls::~EnvironmentCalls() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  asked_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void EnvironmentCalls::ask(uint64_t id, Turn turn) {
  ++under_way_;
  bool needs_thread = false;
  {
    const std::lock_guard lock(mutex_);
    if (has_failed_) return;
    turn.node = node_;
    calls_.push_back({id, std::move(turn)});
    needs_thread = static_cast<int64_t>(calls_.size()) > idle_threads_;
  }
  asked_.notify_one();
  if (needs_thread && static_cast<int64_t>(threads_.size()) < std::max<int64_t>(1, environment_->most_calls())) {
    threads_.emplace_back([this] { work(); });
  }
}

std::vector<EnvironmentCalls::Answer> EnvironmentCalls::take() {
  if (idle()) return {};
  const std::lock_guard lock(mutex_);
  under_way_ -= static_cast<int64_t>(answers_.size());
  return std::exchange(answers_, {});
}

void EnvironmentCalls::wait_for(std::chrono::milliseconds longest) {
  if (idle()) return;
  std::unique_lock lock(mutex_);
  answered_.wait_for(lock, longest, [this] { return !answers_.empty(); });
}

// Waits for: a call. Ends when: the destructor runs.
void EnvironmentCalls::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_threads_;
    asked_.wait(lock, [this] { return ending_ || !calls_.empty(); });
    --idle_threads_;
    if (ending_) return;
    Call call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    std::optional<Answer> answered = answer(std::move(call));
    lock.lock();
    if (!answered) continue;
    if (answered->error) forget_what_has_not_begun();
    answers_.push_back(*std::move(answered));
    answered_.notify_one();
  }
}

// Under the lock.
void EnvironmentCalls::forget_what_has_not_begun() {
  has_failed_ = true;
  calls_.clear();
}

// Nothing: nobody needs it.
std::optional<EnvironmentCalls::Answer> EnvironmentCalls::answer(Call call) const {
  Answer answer{.id = call.id, .turn = std::move(call.turn), .reply = {}, .error = nullptr};
  const engine::OutsideCall call_of_node(outside_, node_, reply_to(answer.turn));
  try {
    answer.turn.wait.go_on();
    answer.reply = environment_->reply(answer.turn);
  } catch (const engine::WorkDropped&) {
    return std::nullopt;
  } catch (const std::exception&) {
    answer.error = std::current_exception();
  } catch (...) {  // what it says cannot be known, but it is told with its place like the others
    answer.error = std::make_exception_ptr(UserError("it threw something that is no std::exception"));
  }
  return answer;
}

}  // namespace sluice::nodes
