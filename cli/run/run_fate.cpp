#include "cli/run/run_fate.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "cli/process/exit_codes.h"
#include "comm/left_behind.h"
#include "comm/link_lost.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::seconds kToUnwind{5};  // for a process that cannot go on

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

template <class Error>
bool is(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error&) {
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void RunFate::watch(OfRun run) {
  const std::lock_guard lock(mutex_);
  run_ = std::move(run);
  leaving_.request_stop();
  if (run_.failed && failure_) run_.failed(failure_);
  for (const auto& [rank, lost] : lost_ranks_) {
    if (run_.lost) run_.lost(rank, lost.why);
    if (run_.back && lost.incarnation > 0) run_.back(rank, lost.incarnation);
  }
}

bool RunFate::end() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ended_, true)) return false;
  run_ = {};
  return true;
}

engine::RankSign RunFate::sign() {
  const std::lock_guard lock(mutex_);
  return run_.sign ? run_.sign() : engine::RankSign{.doing = "before its run"};
}

void RunFate::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  fail_soon(std::move(error));
}

// With the lock.
void RunFate::fail_soon(std::exception_ptr error) {
  if (failure_ || ended_) return;
  was_given_up_ = is<comm::LeftBehind>(error);
  failure_ = std::move(error);
  if (run_.failed)
    run_.failed(failure_);
  else
    leave_soon();
  changed_.notify_all();
  give_up_.request_stop();
}

// Waits for: whatever the main thread is at to fail as well, or the run to begin, which then knows. Ends when: it has, or after
// some seconds: a connection to a rank that was stopped may wait much longer, and models may be long to load.
void RunFate::leave_soon() {
  leaving_ = std::jthread([this](const std::stop_token& over) {
    std::unique_lock waiting(mutex_);
    changed_.wait_for(waiting, over, kToUnwind, [] { return false; });
    if (over.stop_requested() || ended_) return;
    std::fprintf(stderr, "%s", what_of(failure_).c_str());
    std::fflush(stderr);
    std::_Exit(is<comm::CameTooLate>(failure_) ? kDone : was_given_up_ ? kGivenUp : kFailed);
  });
}

void RunFate::hear_of(std::exception_ptr error) {
  if (is<comm::LinkLost>(error)) return suspect(std::move(error));
  const std::lock_guard lock(mutex_);
  if (failure_ || ended_) return;
  terms_.warn(what_of(error));
  fail_soon(std::move(error));
}

// Waits for: the heartbeat to say who is gone, since a connection only knows that somebody is. Ends when: it has, or it would
// have.
void RunFate::suspect(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (suspicion_.joinable()) return;
  suspicion_ = std::jthread([this, error = std::move(error)](const std::stop_token& over) {
    {
      std::unique_lock waiting(mutex_);
      changed_.wait_for(waiting, over, terms_.time_to_notice, [this] { return failure_ != nullptr; });
      if (failure_ || over.stop_requested()) return;
    }
    fail(error);
  });
}

void RunFate::throw_what_is_noticed() {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, terms_.time_to_notice, [this] { return failure_ != nullptr; });
  if (failure_) std::rethrow_exception(failure_);
}

void RunFate::lose(int rank, const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  lost_ranks_[rank] = {.why = why};
  if (lost_) lost_(rank);
  const auto is_gone = [](const auto& lost) { return lost.second.incarnation == 0; };
  const bool none_is_left = std::ranges::count_if(lost_ranks_, is_gone) == terms_.expendable;
  if (none_is_left && !run_.failed)  // else the run knows how to end
    return fail_soon(std::make_exception_ptr(UserError(why + ", and no other rank is left that samples")));
  if (run_.lost) run_.lost(rank, why);
}

bool RunFate::take_back(int rank, int64_t incarnation) {
  const std::lock_guard lock(mutex_);
  if (ended_) return false;
  lost_ranks_[rank].incarnation = incarnation;
  if (run_.back) run_.back(rank, incarnation);
  return true;
}

void RunFate::tell_of_losses(std::function<void(int rank)> lost) {
  const std::lock_guard lock(mutex_);
  lost_ = std::move(lost);
  for (const auto& [rank, how] : lost_ranks_) lost_(rank);
}

bool RunFate::others_failed() const {
  const std::lock_guard lock(mutex_);
  return failure_ != nullptr;
}

void RunFate::begin_to_come_back() {
  const std::lock_guard lock(mutex_);
  is_in_ = false;
  if (run_has_ended_) fail_too_late();
}

void RunFate::be_late() {
  const std::lock_guard lock(mutex_);
  run_has_ended_ = true;
  if (!is_in_) fail_too_late();
}

// With the lock.
void RunFate::fail_too_late() {
  fail_soon(std::make_exception_ptr(comm::CameTooLate("the run has ended, and this rank was not in it yet")));
}

bool RunFate::is_in() const {
  const std::lock_guard lock(mutex_);
  return is_in_;
}

void RunFate::let_in(std::optional<int64_t> first_version) {
  const std::lock_guard lock(mutex_);
  answer_ = first_version;
  is_in_ = first_version.has_value();
  changed_.notify_all();
}

int64_t RunFate::await_entry() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return answer_ || failure_; });
  if (failure_ && !is_in_) std::rethrow_exception(failure_);
  if (!*answer_) throw comm::CameTooLate("the run ends before this rank can make a group for it");
  return **answer_;
}

}  // namespace sluice::cli
