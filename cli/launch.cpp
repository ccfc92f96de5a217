#include "cli/launch.h"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/free_port.h"
#include "base/machine.h"
#include "base/strings.h"
#include "base/world_environment.h"
#include "cli/exit_codes.h"
#include "cli/ink.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::milliseconds kTick{100};  // at least so often signals and deadlines are looked at
constexpr std::chrono::seconds kToEnd{2};        // for ranks that have nothing left to do
constexpr size_t kLongestLine = 1 << 20;         // what is longer is printed in pieces

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

// By SIGSTOP and the like. Its end is still there to be waited for.
bool is_stopped(pid_t pid) {
  siginfo_t found{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &found, WSTOPPED | WNOHANG | WNOWAIT) == 0 && found.si_pid == pid;
}

}  // namespace

std::vector<int> cores_of_rank(const std::vector<int>& cores, int rank, int ranks) {
  const auto have = static_cast<std::int64_t>(cores.size());
  const std::int64_t first = rank * have / ranks;
  const std::int64_t behind = have < ranks ? ((rank + 1) * have + ranks - 1) / ranks : (rank + 1) * have / ranks;
  return {cores.begin() + first, cores.begin() + behind};
}

Launch::Launch(const LaunchOptions& options)
    : options_(options), port_(options.port > 0 ? options.port : free_port()), cursor_(abilities_of(stderr).cursor) {
  for (int number = 0; number < options_.ranks; ++number) ranks_.push_back({.number = number, .process = started(number)});
  list_processes();
}

std::unique_ptr<Subprocess> Launch::started(int number) const {
  const WorldEnvironment place{.rank = number,
                               .size = options_.ranks,
                               .local_rank = number,
                               .local_size = options_.ranks,
                               .host = "127.0.0.1",
                               .port = port_,
                               .served = false,
                               .from = {}};
  auto process =
      std::make_unique<Subprocess>(SubprocessOptions{.arguments = options_.words,
                                                     .environment = environment_for(place),
                                                     .output = number == 0 ? ChildOutput::kShared : ChildOutput::kOnePipe,
                                                     .cores = cores_of_rank(cores_of_affinity(), number, options_.ranks),
                                                     .most_output = kLongestLine});
  process->end_input();
  return process;
}

void Launch::list_processes() {
  processes_.clear();
  for (Rank& rank : ranks_) processes_.push_back(rank.process.get());
}

int Launch::wait() {
  while (!all_ended()) {
    Subprocess::exchange(processes_, Clock::now() + kTick);
    for (Rank& rank : ranks_) print_lines(rank);
    pass_signals();  // before ends are judged, which may be because of them
    look_for_ends();
    hurry();
    end_stopped_ones();
  }
  return bad_code_ != kDone ? bad_code_ : asked_code_;
}

bool Launch::all_ended() const {
  return std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.end_is_known; });
}

void Launch::pass_signals() {
  if (run_signals_.take_save_request()) signal_all(SIGUSR1);
  while (const int number = signals_.take()) {
    if (number == SIGTSTP) {
      stop_with_ranks();
    } else {
      asked_to_end_ = true;
      signal_all(number);
    }
  }
}

// The shell sees this process stop, and wakes it alone.
void Launch::stop_with_ranks() {
  for (Rank& rank : ranks_) rank.process->signal_group(SIGSTOP);
  ::raise(SIGSTOP);
  for (Rank& rank : ranks_) rank.process->signal_group(SIGCONT);
}

void Launch::signal_all(int number) {
  for (Rank& rank : ranks_) rank.process->signal(number);
}

void Launch::print_lines(Rank& rank) {
  const std::string prefix = "[" + name_of(rank.number) + "] ";
  std::string text;
  while (const auto line = rank.process->take_line()) text += prefix + *line + "\n";
  if (rank.process->ended() || rank.process->overflowed()) {  // what is left has no end, or none that will come soon
    const std::string rest = rank.process->take_output();
    if (!rest.empty()) text += prefix + rest + "\n";
  }
  print(text);
}

// At once, so that nothing that rank 0 writes comes between. Its unfinished line, which it will write again, gives way.
void Launch::print(const std::string& lines) const {
  if (lines.empty()) return;
  if (cursor_) std::fputs(kClearLine, stderr);
  print_text(lines, stderr);
}

// Of those that have ended meanwhile the killed ones first: others may have ended because of them.
void Launch::look_for_ends() {
  std::vector<Rank*> ended;
  for (Rank& rank : ranks_) {
    if (rank.process->ended() && !std::exchange(rank.end_is_known, true)) ended.push_back(&rank);
  }
  std::stable_partition(ended.begin(), ended.end(), [](const Rank* rank) { return rank->process->was_killed(); });
  for (Rank* rank : ended) judge_end(*rank);
}

void Launch::judge_end(Rank& rank) {
  const int code = rank.process->shell_code();
  if (rank.number == 0) {  // it ends last: the others have nothing left to do
    if (!ask_at_) ask_at_ = Clock::now() + options_.notice;
    late_at_ = Clock::now() + kToEnd;
  }
  if (code == kDone) return;
  if (asked_to_end_ && (code == exit_code_of_signal(SIGINT) || code == exit_code_of_signal(SIGTERM))) {
    if (asked_code_ == kDone) asked_code_ = code;
    return;
  }
  if (others_go_on_without(rank)) return go_on_without(rank);
  if (bad_code_ != kDone) return;
  bad_code_ = code;
  ask_at_ = Clock::now() + options_.notice;
  print(name_of(rank.number) + " (pid " + std::to_string(rank.process->pid()) + ") " + rank.process->how_it_ended() + "\n");
}

// It was killed, or the others have given it up.
bool Launch::is_lost(const Rank& rank) {
  return rank.process->ended() && (rank.process->was_killed() || rank.process->shell_code() == kGivenUp);
}

// What fails by itself fails on another rank, too. One that was started again may not have been in the run.
bool Launch::others_go_on_without(const Rank& rank) const {
  const auto is_expendable = [this](const Rank& other) {
    return options_.expendable_from > 0 && other.number >= options_.expendable_from;
  };
  const auto is_left = [&](const Rank& other) { return is_expendable(other) && !is_lost(other); };
  return is_expendable(rank) && (is_lost(rank) || rank.restarts > 0) && std::ranges::any_of(ranks_, is_left);
}

// While the run goes on it is started again.
void Launch::go_on_without(Rank& rank) {
  const bool is_over = ranks_.front().end_is_known || asked_to_end_ || bad_code_ != kDone;
  const bool again = is_lost(rank) && !is_over && rank.restarts < options_.restarts;
  print(name_of(rank.number) + " (pid " + std::to_string(rank.process->pid()) + ") " + rank.process->how_it_ended() +
        ": its role is elastic, and the others go on" + (again ? "; it is started again" : "") + "\n");
  if (again) start_again(rank);
}

void Launch::start_again(Rank& rank) {
  try {
    rank.process = started(rank.number);
  } catch (const UserError& error) {
    return print(error.what());
  }
  rank.end_is_known = false;
  ++rank.restarts;
  list_processes();
}

void Launch::hurry() {
  const auto now = Clock::now();
  if (late_at_ && now >= *late_at_) {
    late_at_.reset();
    end_late_ones();
  }
  if (ask_at_ && now >= *ask_at_) {
    ask_at_.reset();
    kill_at_ = now + options_.grace;
    print("the other ranks have not ended: they are asked to\n");
    signal_all(SIGTERM);
  }
  if (kill_at_ && now >= *kill_at_) {
    kill_at_.reset();
    print("they still have not: they are killed\n");
    for (Rank& rank : ranks_) rank.process->signal_group(SIGKILL);
  }
}

// Rank 0 has waited for all that were in the run: those that were started again and are not in it have nothing to wait for.
void Launch::end_late_ones() {
  for (Rank& rank : ranks_)
    if (rank.restarts > 0 && !rank.end_is_known) rank.process->signal_group(SIGKILL);
}

// Whoever has stopped all ranks may have them go on; but not where some have ended.
void Launch::end_stopped_ones() {
  const auto goes_on = [](const Rank& rank) { return !rank.end_is_known && !is_stopped(rank.process->pid()); };
  const bool some_ended = std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.end_is_known; });
  if (!some_ended || all_ended() || std::ranges::any_of(ranks_, goes_on)) return stopped_since_.reset();
  const auto now = Clock::now();
  if (!stopped_since_) stopped_since_ = now;
  if (now < *stopped_since_ + options_.notice) return;
  stopped_since_.reset();
  for (Rank& rank : ranks_) {
    if (rank.end_is_known) continue;
    print(name_of(rank.number) + " (pid " + std::to_string(rank.process->pid()) +
          ") is stopped, and all others have ended: it is killed\n");
    rank.process->signal_group(SIGKILL);
  }
}

}  // namespace sluice::cli
