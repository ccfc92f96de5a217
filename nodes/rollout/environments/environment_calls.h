#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "nodes/rollout/environments/environment.h"

namespace sluice::nodes {

/// Calls of an environment that are under way, on threads of its own, so that who asks need not wait. Used by one thread.
class EnvironmentCalls {
 public:
  struct Answer {
    uint64_t id = 0;
    Turn turn;
    Reply reply;
    std::exception_ptr error;  // instead of a reply
  };

  /// Threads come with the first calls, at most environment->most_calls() of them. `outside` learns which calls of `node` are
  /// under way, and outlives this; null: nobody does.
  explicit EnvironmentCalls(std::shared_ptr<const Environment> environment, engine::OutsideWork* outside = nullptr,
                            std::string node = {});

  /// Forgets the calls that have not begun, and waits for those that have: an environment bounds them. Where one does not, a run
  /// has learnt that from `outside`, and does not destroy this.
  ~EnvironmentCalls();

  EnvironmentCalls(const EnvironmentCalls&) = delete;

  /// Where the reply is not needed any more by the time that the call would begin or end, there is no answer (Turn::wait). Nor is
  /// there one to what has not begun when a call has failed: that ends the run, and calls may change something outside.
  void ask(uint64_t id, Turn turn);

  /// The answers that have come, in any order. Never waits.
  std::vector<Answer> take();

  /// Waits for: an answer. Ends when: one is there, `longest` has passed, or nothing is under way.
  void wait_for(std::chrono::milliseconds longest);

  /// Nothing was asked that was not taken.
  bool idle() const { return under_way_ == 0; }

 private:
  struct Call {
    uint64_t id = 0;
    Turn turn;
  };

  void work();
  void forget_what_has_not_begun();
  std::optional<Answer> answer(Call call) const;

  const std::shared_ptr<const Environment> environment_;
  engine::OutsideWork* const outside_;
  const std::string node_;
  int64_t under_way_ = 0;  // asked and not taken; of the user's thread
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable asked_, answered_;
  std::deque<Call> calls_;
  std::vector<Answer> answers_;
  int64_t idle_threads_ = 0;
  bool has_failed_ = false;  // a call has; no other begins
  bool ending_ = false;
};

}  // namespace sluice::nodes
