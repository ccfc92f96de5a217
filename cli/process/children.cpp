#include "cli/process/children.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "cli/terminal/ink.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::milliseconds kTick{100};  // at least so often signals and deadlines are looked at
constexpr size_t kLongestLine = 1 << 20;         // what is longer is printed in pieces

std::unique_ptr<Subprocess> started(SubprocessOptions options) {
  options.most_output = kLongestLine;
  auto process = std::make_unique<Subprocess>(std::move(options));
  process->end_input();
  return process;
}

}  // namespace

std::string Child::called() const { return name + " (pid " + std::to_string(process->pid()) + ")"; }

Children::Children() : cursor_(abilities_of(stderr).cursor) {}

Child& Children::start(const std::string& name, SubprocessOptions options) {
  return children_.emplace_back(Child{.name = name, .process = started(std::move(options))});
}

void Children::start_again(Child& child, SubprocessOptions options) {
  child.process = started(std::move(options));
  child.end_is_known = false;
}

void Children::forget(const Child& child) {
  children_.remove_if([&](const Child& one) { return &one == &child; });
}

void Children::attend() {
  std::vector<Subprocess*> processes;
  for (const Child& child : children_) processes.push_back(child.process.get());
  Subprocess::exchange(processes, Clock::now() + kTick);
  for (Child& child : children_) print_lines(child);
  pass_signals();
}

void Children::print_lines(Child& child) const {
  const std::string prefix = "[" + child.name + "] ";
  std::string text;
  while (const auto line = child.process->take_line()) text += prefix + *line + "\n";
  if (child.process->ended() || child.process->overflowed()) {  // what is left has no end, or none that will come soon
    const std::string rest = child.process->take_output();
    if (!rest.empty()) text += prefix + rest + "\n";
  }
  print(text);
}

// At once, so that nothing that a child writes comes between.
void Children::print(const std::string& lines) const {
  if (lines.empty()) return;
  if (cursor_) std::fputs(kClearLine, stderr);
  print_text(lines, stderr);
}

std::vector<Child*> Children::take_ended() {
  std::vector<Child*> ended;
  for (Child& child : children_) {
    if (child.process->ended() && !std::exchange(child.end_is_known, true)) ended.push_back(&child);
  }
  std::stable_partition(ended.begin(), ended.end(), [](const Child* child) { return child->process->was_killed(); });
  return ended;
}

void Children::pass_signals() {
  if (run_signals_.take_save_request()) signal_all(SIGUSR1);
  while (const int number = signals_.take()) {
    if (number == SIGTSTP) {
      stop_with_all();
    } else {
      if (asked_to_end_ == 0) asked_to_end_ = number;
      signal_all(number);
    }
  }
}

// The shell sees this process stop, and wakes it alone.
void Children::stop_with_all() {
  signal_all_groups(SIGSTOP);
  ::raise(SIGSTOP);
  signal_all_groups(SIGCONT);
}

void Children::signal_all(int number) {
  for (Child& child : children_) child.process->signal(number);
}

void Children::signal_all_groups(int number) {
  for (Child& child : children_) child.process->signal_group(number);
}

}  // namespace sluice::cli
