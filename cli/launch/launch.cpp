#include "cli/launch/launch.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "base/error.h"
#include "base/process/free_port.h"
#include "base/process/machine.h"
#include "base/process/world_environment.h"
#include "base/text/strings.h"
#include "cli/process/core_shares.h"
#include "cli/process/exit_codes.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::seconds kToEnd{2};  // for ranks that have nothing left to do, or wait for a rank 0 that is gone

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

// By SIGSTOP and the like. Its end is still there to be waited for.
bool is_stopped(pid_t pid) {
  siginfo_t found{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &found, WSTOPPED | WNOHANG | WNOWAIT) == 0 && found.si_pid == pid;
}

}  // namespace

Launch::Launch(const LaunchOptions& options) : options_(options), port_(options.port > 0 ? options.port : free_port()) {
  for (int number = 0; number < options_.ranks; ++number)
    ranks_.push_back({.number = number, .child = &children_.start(name_of(number), options_of(number))});
}

SubprocessOptions Launch::options_of(int number) const {
  const WorldEnvironment place{.rank = number,
                               .size = options_.ranks,
                               .local_rank = number,
                               .local_size = options_.ranks,
                               .host = "127.0.0.1",
                               .port = port_,
                               .served = false,
                               .from = {}};
  return {.arguments = options_.words,
          .environment = environment_for(place),
          .output = number == 0 ? ChildOutput::kShared : ChildOutput::kOnePipe,
          .cores = share_of_cores(cores_of_affinity(), number, options_.ranks),
          .blocked = options_.blocked};
}

int Launch::wait() {
  wait_for_all();
  while (course_.begins_again && !course_.has_begun && children_.asked_to_end() == 0) {
    begin_again();
    wait_for_all();
  }
  if (course_.bad_code == kDone && course_.asked_code == kDone && course_.after_asked != nullptr)
    take_for_bad(*course_.after_asked);
  return course_.bad_code != kDone ? course_.bad_code : course_.asked_code;
}

void Launch::wait_for_all() {
  while (!all_ended()) {
    children_.attend();  // passes signals on before ends are judged, which may be because of them
    look_whether_it_begins();
    look_for_ends();
    hurry();
    end_stopped_ones();
  }
}

// At another port: what the ranks of before have left at that one must not be met. Throws UserError.
void Launch::begin_again() {
  ++beginnings_;
  course_ = {};
  if (options_.port == 0) port_ = free_port();
  for (Rank& rank : ranks_) {
    rank = {.number = rank.number, .child = rank.child};
    children_.start_again(*rank.child, options_of(rank.number));
  }
}

// A short run may have begun and ended: what it began with is looked for while rank 0 is there.
void Launch::look_whether_it_begins() {
  course_.has_begun = course_.has_begun || !options_.has_begun || options_.has_begun(ranks_.front().child->process->pid());
}

bool Launch::all_ended() const {
  return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.child->end_is_known; });
}

void Launch::look_for_ends() {
  for (const Child* ended : children_.take_ended()) judge_end(*std::ranges::find(ranks_, ended, &Rank::child));
}

void Launch::judge_end(Rank& rank) {
  const int code = rank.child->process->shell_code();
  if (rank.number == 0) {  // it ends last: the others have nothing left to do
    if (!course_.ask_at) course_.ask_at = Clock::now() + options_.notice;
    course_.late_at = Clock::now() + kToEnd;
  }
  if (code == kDone || rank.ended_as_late) return;
  if (has_ended_without(rank)) return go_on_without(rank);
  if (children_.asked_to_end() != 0 && (code == exit_code_of_signal(SIGINT) || code == exit_code_of_signal(SIGTERM))) {
    if (course_.asked_code == kDone) course_.asked_code = code;
    return;
  }
  if (course_.bad_code != kDone) return judge_later_end(rank);
  if (others_go_on_without(rank)) return course_.has_begun ? go_on_without(rank) : end_before_it_begins(rank);
  if (may_follow_from_a_signal(rank)) return remember_for_later(rank);
  take_for_bad(rank);
  wait_for_others();
}

// Before the run begins, those that are there wait for all to come, and one will not; what it knew it has told them.
void Launch::wait_for_others() {
  const auto in_vain = std::min<std::chrono::milliseconds>(kToEnd, options_.notice);
  course_.ask_at = Clock::now() + (course_.has_begun ? options_.notice : in_vain);
}

void Launch::take_for_bad(const Rank& rank) {
  course_.bad_code = rank.child->process->shell_code();
  children_.print(rank.child->called() + " " + rank.child->process->how_it_ended() + "\n");
}

// While the ranks meet, a signal ends each at once, and one that has not got it yet fails because it misses the others. Later
// they save first, and a failure is one.
bool Launch::may_follow_from_a_signal(const Rank& rank) const {
  return !course_.has_begun && children_.asked_to_end() != 0 && rank.child->process->shell_code() == kFailed;
}

// Whether a rank has ended by the signal may be known later.
void Launch::remember_for_later(const Rank& rank) {
  if (course_.after_asked == nullptr) course_.after_asked = &rank;
  if (!course_.ask_at) course_.ask_at = Clock::now() + options_.notice;
}

// The ranks have not all met, and those that wait for this process would not take another one for it.
void Launch::end_before_it_begins(const Rank& rank) {
  course_.bad_code = rank.child->process->shell_code();
  course_.begins_again = beginnings_ < options_.restarts && children_.asked_to_end() == 0;
  children_.print(rank.child->called() + " " + rank.child->process->how_it_ended() +
                  " before the run has begun: nothing was run, and " +
                  (course_.begins_again ? "all ranks are started again" : "the other ranks are ended") + "\n");
  ask_all_to_end();
}

// After a bad one: a consequence of that, or a death of its own. What others ended of rank 0 may tell last.
void Launch::judge_later_end(const Rank& rank) {
  const int code = rank.child->process->shell_code();
  if (rank.number == 0 && code == kWrongPipeline) course_.bad_code = code;
  if (rank.child->process->was_killed() && !rank.killed_here && !course_.has_asked && children_.asked_to_end() == 0)
    children_.print(rank.child->called() + " " + rank.child->process->how_it_ended() + "\n");
}

// It was killed, or the others have given it up.
bool Launch::is_lost(const Rank& rank) {
  return rank.child->process->ended() && (rank.child->process->was_killed() || rank.child->process->shell_code() == kGivenUp);
}

// What fails by itself fails on another rank, too. One that was started again may not have been in the run.
bool Launch::others_go_on_without(const Rank& rank) const {
  return options_.expendable.has(rank.number) &&
         (is_lost(rank) || course_.none_samples || (rank.restarts > 0 && some_other_samples()));
}

// The run has ended well. Who was given up in it, and wakes now, finds nobody.
bool Launch::has_ended_without(const Rank& rank) const {
  const Child& first = *ranks_.front().child;
  return options_.expendable.has(rank.number) && first.end_is_known && first.process->shell_code() == kDone;
}

bool Launch::some_other_samples() const {
  return std::ranges::any_of(
      ranks_, [&](const Rank& other) { return options_.expendable.has(other.number) && !other.child->process->ended(); });
}

// Rank 0 has ended, or all have been asked to end.
bool Launch::is_over() const { return ranks_.front().child->end_is_known || course_.has_asked || children_.asked_to_end() != 0; }

// One that has ended by itself tells nothing of the others: they may be ending, too.
std::string Launch::what_others_do_without(const Rank& rank) const {
  if (all_ended()) return "and the others have ended";
  if (is_over()) return "and the others are ending";
  if (course_.none_samples) return "and the others end, since no other one samples";
  return is_lost(rank) ? "and the others go on" : "and the others do not need it";
}

// While the run goes on it is started again.
void Launch::go_on_without(Rank& rank) {
  course_.none_samples = course_.none_samples || !some_other_samples();
  const bool again = is_lost(rank) && !is_over() && !course_.none_samples && rank.restarts < options_.restarts;
  children_.print(rank.child->called() + " " + rank.child->process->how_it_ended() + ": its role is elastic, " +
                  what_others_do_without(rank) + (again ? "; it is started again" : "") + "\n");
  if (again) start_again(rank);
}

void Launch::start_again(Rank& rank) {
  try {
    children_.start_again(*rank.child, options_of(rank.number));
  } catch (const UserError& error) {
    return children_.print(error.what());
  }
  ++rank.restarts;
}

void Launch::hurry() {
  const auto now = Clock::now();
  if (course_.late_at && now >= *course_.late_at) {
    course_.late_at.reset();
    end_late_ones();
  }
  if (course_.ask_at && now >= *course_.ask_at) {
    children_.print("the other ranks have not ended: they are asked to\n");
    ask_all_to_end();
  }
  if (course_.kill_at && now >= *course_.kill_at) {
    course_.kill_at.reset();
    children_.print("they still have not: they are killed\n");
    children_.signal_all_groups(SIGKILL);
  }
}

void Launch::ask_all_to_end() {
  course_.ask_at.reset();
  course_.kill_at = Clock::now() + options_.grace;
  course_.has_asked = true;
  children_.signal_all(SIGTERM);
}

void Launch::kill(Rank& rank) {
  rank.killed_here = true;
  rank.child->process->signal_group(SIGKILL);
}

// Rank 0 has waited for all that were in the run: those that were started again and are not in it have nothing to wait for.
void Launch::end_late_ones() {
  for (Rank& rank : ranks_) {
    if (rank.restarts == 0 || rank.child->end_is_known) continue;
    children_.print(rank.child->called() + " was started again, and has not ended with the run: it is ended\n");
    rank.ended_as_late = true;
    kill(rank);
  }
}

// Whoever has stopped all ranks may have them go on; but not where some have ended.
void Launch::end_stopped_ones() {
  const auto goes_on = [](const Rank& rank) { return !rank.child->end_is_known && !is_stopped(rank.child->process->pid()); };
  const bool some_ended = std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.child->end_is_known; });
  if (!some_ended || all_ended() || std::ranges::any_of(ranks_, goes_on)) return course_.stopped_since.reset();
  const auto now = Clock::now();
  if (!course_.stopped_since) course_.stopped_since = now;
  if (now < *course_.stopped_since + options_.notice) return;
  course_.stopped_since.reset();
  for (Rank& rank : ranks_) {
    if (rank.child->end_is_known) continue;
    children_.print(rank.child->called() + " is stopped, and all others have ended: it is killed\n");
    kill(rank);
  }
}

}  // namespace sluice::cli
