#include "cli/process/launch_signals.h"

#include <atomic>

namespace sluice::cli {
namespace {

constexpr std::array kNumbers{SIGINT, SIGTERM, SIGTSTP};

// A signal handler can reach nothing but static storage.
std::array<std::atomic<int>, kNumbers.size()> remembered;
static_assert(std::atomic<int>::is_always_lock_free);

void remember_signal(int number) {
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    if (kNumbers[i] == number) ++remembered[i];
  }
}

}  // namespace

LaunchSignals::LaunchSignals() {
  struct sigaction action {};
  action.sa_handler = remember_signal;
  action.sa_flags = SA_RESTART;  // a line that is being written is written to its end
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    remembered[i] = 0;
    ::sigaction(kNumbers[i], &action, &before_[i]);
  }
}

LaunchSignals::~LaunchSignals() {
  for (size_t i = 0; i < kNumbers.size(); ++i) ::sigaction(kNumbers[i], &before_[i], nullptr);
}

int LaunchSignals::take() {
  for (size_t i = 0; i < kNumbers.size(); ++i) {
    if (remembered[i] == 0) continue;
    --remembered[i];
    return kNumbers[i];
  }
  return 0;
}

}  // namespace sluice::cli
