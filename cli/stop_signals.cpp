#include "cli/stop_signals.h"

#include <signal.h>
#include <unistd.h>

#include "cli/exit_codes.h"

namespace sluice::cli {
namespace {

// A signal handler can reach nothing but static storage.
volatile sig_atomic_t first_signal = 0;

void on_signal(int number) {
  if (first_signal != 0) ::_exit(exit_code_of_signal(number));
  first_signal = number;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);  // one after the other where both come at once
  ::sigaddset(&action.sa_mask, SIGINT);
  ::sigaddset(&action.sa_mask, SIGTERM);
  ::sigaction(number, &action, nullptr);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
}

StopSignals::~StopSignals() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
}

int StopSignals::seen() const { return first_signal; }

}  // namespace sluice::cli
