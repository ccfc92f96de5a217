#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "cli/exit_codes.h"

namespace sluice::cli {
namespace {

// A signal handler can reach nothing but static storage.
volatile sig_atomic_t signals_seen = 0;

void on_signal(int) {
  signals_seen = signals_seen + 1;
  if (signals_seen > 1) ::_exit(kInterrupted);
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

InterruptWatch::InterruptWatch() {
  signals_seen = 0;
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
}

InterruptWatch::~InterruptWatch() {
  handle(SIGINT, SIG_DFL);
  handle(SIGTERM, SIG_DFL);
}

bool InterruptWatch::interrupted() const { return signals_seen > 0; }

}  // namespace sluice::cli
