#include "cli/display.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/strings.h"
#include "cli/terminal.h"

namespace sluice::cli {
namespace {

constexpr size_t kBarWidth = 16;
constexpr const char* kClearLine = "\r\033[K";

}  // namespace

Display::Display(const engine::Plan& plan, const RunHistory& history, const engine::Run& run, std::function<void(Display&)> poll)
    : plan_(plan), history_(history), run_(run), poll_(std::move(poll)), terminal_(::isatty(STDOUT_FILENO) == 1) {
  thread_ = std::thread([this] { loop(); });
}

void Display::iteration_done() {
  if (terminal_) return;
  std::printf("%s  %s\n", plan_.pipeline.name.c_str(), history_.latest_line().c_str());
  std::fflush(stdout);
}

void Display::say(const std::string& line, std::FILE* stream) {
  std::fprintf(stream, "%s%s\n", terminal_ ? kClearLine : "", line.c_str());
  std::fflush(stream);
}

void Display::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  wake_.notify_one();
  thread_.join();
  if (terminal_) std::printf("%s", kClearLine);
  std::fflush(stdout);
}

void Display::loop() {
  constexpr auto kPoll = std::chrono::milliseconds(50);
  constexpr int kPollsPerFrame = 4;
  std::unique_lock lock(mutex_);
  for (int polls = 0; !wake_.wait_for(lock, kPoll, [this] { return stopped_; }); ++polls) {
    poll_(*this);
    if (!terminal_ || polls % kPollsPerFrame != 0) continue;
    std::printf("%s%s", kClearLine, live_text().substr(0, terminal_size().columns - 1).c_str());
    std::fflush(stdout);
  }
}

std::string Display::live_text() const {
  const engine::RunStatus status = run_.status();
  const int64_t all = plan_.pipeline.iterations;
  const std::string progress = bar(static_cast<double>(status.iterations_done), static_cast<double>(all), kBarWidth);
  std::string text = plan_.pipeline.name + "  " + progress + " " + std::to_string(100 * status.iterations_done / all) + " %  ";
  // Before the figures: a narrow terminal cuts the end off.
  const double left = history_.seconds_left();
  if (left > 0) text += "about " + human_seconds(left) + " left   ";
  const std::string latest = history_.latest_line();
  text += latest.empty() ? "iteration 0/" + std::to_string(all) : latest;
  text += "   in flight " + human_count(static_cast<double>(status.tokens_in_flight)) + "/" +
          human_count(static_cast<double>(plan_.budget.tokens_in_flight));
  for (const auto& executor : status.executors) text += "   " + executor.name + " " + (executor.working_on.empty() ? "idle" : executor.working_on);
  return text;
}

}  // namespace sluice::cli
