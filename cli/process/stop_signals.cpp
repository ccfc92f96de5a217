#include "cli/process/stop_signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "cli/process/exit_codes.h"

namespace sluice::cli {
namespace {

// A signal handler can reach nothing but static storage. Two signals may be handled at once, on two threads.
std::atomic<int64_t> first_at_ns = 0;
std::atomic<int> first_signal = 0;
static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

int64_t now_ns() {
  struct timespec now {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

// `timeout` and others send one to the process and to its group: what comes at once is one wish.
void on_signal(int number) {
  constexpr int64_t kOneWish_ns = 100'000'000;
  const int64_t now = now_ns();
  int64_t first = 0;
  if (first_at_ns.compare_exchange_strong(first, now))
    first_signal = number;
  else if (now - first > kOneWish_ns)
    ::_exit(exit_code_of_signal(number));
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
  first_at_ns = 0;
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
