#include "cli/simulate/simulate_progress.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "base/text/strings.h"
#include "cli/terminal/terminal.h"

namespace sluice::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{1000}, kFrame{200};
constexpr size_t kBarWidth = 16;

}  // namespace

SimulateProgress::SimulateProgress(std::string name, int64_t iterations)
    : name_(std::move(name)),
      iterations_(iterations),
      able_(abilities_of(stderr)),
      begin_(Clock::now()),
      next_(begin_ + kPatience) {}

SimulateProgress::~SimulateProgress() {
  if (is_shown_) std::fputs(kClearLine, stderr);
}

// What matters most comes first: a narrow terminal cuts the end off.
void SimulateProgress::show(int64_t done) {
  const Clock::time_point now = Clock::now();
  if (!able_.cursor || now < next_) return;
  next_ = now + kFrame;
  is_shown_ = true;
  const auto so_far = static_cast<double>(done), all = static_cast<double>(iterations_);
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const std::vector<Piece> line{
      {"simulating " + name_ + "  ", Ink::kBold},
      {bar(so_far, all, kBarWidth), Ink::kGreen},
      {" " + std::to_string(100 * done / iterations_) + " %  about " + human_seconds(seconds / so_far * (all - so_far)) +
       " left   iteration " + std::to_string(done) + "/" + std::to_string(iterations_)}};
  std::fprintf(stderr, "%s%s", kClearLine, fitted(line, terminal_size(stderr).columns - 1, able_.colour).c_str());
}

}  // namespace sluice::cli
