#include "cli/process/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "cli/process/exit_codes.h"

namespace sluice::cli {
namespace {

// A signal handler can reach nothing but static storage. Two signals may be handled at once, on two threads.
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int>::is_always_lock_free);

void on_signal(int number) {
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, number)) ::_exit(exit_code_of_signal(number));
}

void handle_stop(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);  // on one thread one after the other
  ::sigaddset(&action.sa_mask, SIGINT);
  ::sigaddset(&action.sa_mask, SIGTERM);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  handle_stop(SIGINT, on_signal);
  handle_stop(SIGTERM, on_signal);
}

StopSignals::~StopSignals() {
  handle_stop(SIGINT, SIG_DFL);
  handle_stop(SIGTERM, SIG_DFL);
}

int StopSignals::seen() const { return first_signal; }

}  // namespace sluice::cli
