#include "cli/process/run_signals.h"

#include <signal.h>

namespace sluice::cli {
namespace {

// A signal handler can reach nothing but static storage.
volatile sig_atomic_t save_requested = 0;

void on_save_request(int) { save_requested = 1; }
void do_nothing(int) {}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;  // no read or write of the run notices
  ::sigaction(number, &action, nullptr);
}

}  // namespace

// Handlers that do nothing, and not SIG_IGN: programs that the run starts, such as scorers, inherit what is ignored.
RunSignals::RunSignals() {
  handle(SIGHUP, do_nothing);
  handle(SIGPIPE, do_nothing);
  handle(SIGXFSZ, do_nothing);
  handle(SIGUSR1, on_save_request);
  sigset_t held_back;  // by who has started this process, until now
  sigemptyset(&held_back);
  sigaddset(&held_back, SIGUSR1);
  ::pthread_sigmask(SIG_UNBLOCK, &held_back, nullptr);
}

bool RunSignals::take_save_request() {
  if (save_requested == 0) return false;
  save_requested = 0;
  return true;
}

}  // namespace sluice::cli
