#include "cli/run/display.h"

#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {
namespace {

constexpr size_t kBarWidth = 16;
constexpr size_t kCurveIterations = 60, kCurveWidth = 20;
constexpr size_t kWidthWithoutTerminal = 160;

// "ppo", "ppo on 2 ranks"
std::string name_of(const engine::Plan& plan) {
  return plan.pipeline.name + (plan.ranks > 1 ? " on " + plural(plan.ranks, "rank") : "");
}

}  // namespace

Display::Display(const engine::Plan& plan, const RunHistory& history, const engine::Run& run, std::function<void()> poll)
    : plan_(plan), history_(history), run_(run), poll_(std::move(poll)), able_(abilities_of(stdout)) {
  thread_ = std::thread([this] { loop(); });
}

size_t Display::width() const { return able_.cursor ? terminal_size().columns - 1 : kWidthWithoutTerminal; }

std::string Display::iteration_line() const {
  std::vector<Piece> line{{name_of(plan_) + "  ", Ink::kBold}};
  for (Piece& piece : history_.latest()) line.push_back(std::move(piece));
  return fitted(line, able_.cursor ? width() : std::numeric_limits<size_t>::max(), able_.colour) + "\n";
}

void Display::iteration_done(const std::string& samples) {
  if (able_.cursor && samples.empty()) return;
  std::printf("%s%s%s", able_.cursor ? kClearLine : "", iteration_line().c_str(), samples.c_str());
  std::fflush(stdout);
}

void Display::say(const std::string& line, Ink ink, std::FILE* stream) {
  const bool colour = abilities_of(stream).colour;
  std::fprintf(stream, "%s%s\n", able_.cursor ? kClearLine : "", inked(printable(line, Lines::kKept), ink, colour).c_str());
  std::fflush(stream);
}

void Display::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
  }
  wake_.notify_one();
  thread_.join();
  if (able_.cursor) std::printf("%s", kClearLine);
  std::fflush(stdout);
}

void Display::loop() {
  constexpr auto kPoll = std::chrono::milliseconds(50);
  constexpr int kPollsPerFrame = 4;
  std::unique_lock lock(mutex_);
  for (int polls = 0; !wake_.wait_for(lock, kPoll, [this] { return stopped_; }); ++polls) {
    poll_();
    if (!able_.cursor || polls % kPollsPerFrame != 0) continue;
    std::printf("%s%s", kClearLine, fitted(live_line(), width(), able_.colour).c_str());
    std::fflush(stdout);
  }
}

// What matters most comes first: a narrow terminal cuts the end off.
std::vector<Piece> Display::live_line() const {
  const engine::RunStatus status = run_.status();
  const int64_t all = plan_.pipeline.iterations;
  const std::string progress = bar(static_cast<double>(status.iterations_done), static_cast<double>(all), kBarWidth);
  std::vector<Piece> line{{name_of(plan_) + "  ", Ink::kBold},
                          {progress, Ink::kGreen},
                          {" " + std::to_string(100 * status.iterations_done / all) + " %  "}};
  const double left = history_.seconds_left();
  if (left > 0) line.push_back({"about " + human_seconds(left) + " left   "});
  std::vector<Piece> latest = history_.latest();
  if (latest.empty()) latest.push_back({"iteration 0/" + std::to_string(all)});
  for (Piece& piece : latest) line.push_back(std::move(piece));
  const std::string curve = history_.score_curve(kCurveIterations, kCurveWidth, able_.unicode);
  if (!curve.empty()) line.push_back({"   " + curve, Ink::kBlue});
  line.push_back({"   in flight " + human_count(static_cast<double>(status.tokens_in_flight)) + "/" +
                      human_count(static_cast<double>(plan_.token_capacity())),
                  Ink::kDim});
  for (const auto& executor : status.executors)
    line.push_back({"   " + executor.name + " " + (executor.working_on.empty() ? "idle" : executor.working_on), Ink::kDim});
  return line;
}

}  // namespace sluice::cli
