#pragma once

#include <signal.h>

#include <array>

namespace sluice::cli {

/// Keeps SIGINT, SIGTERM and SIGTSTP (Ctrl-Z) from ending or stopping this process while it lives: they are remembered, for who
/// passes them on. One at a time in a process.
class LaunchSignals {
 public:
  LaunchSignals();
  ~LaunchSignals();
  LaunchSignals(const LaunchSignals&) = delete;
  LaunchSignals& operator=(const LaunchSignals&) = delete;

  /// One that came and was not taken yet; 0: none. The order between different ones is lost.
  int take();

 private:
  std::array<struct sigaction, 3> before_{};
};

}  // namespace sluice::cli
