#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/terminal/ink.h"

namespace sluice::cli {

/// How far a simulation is, for whoever waits for it at a terminal: a line of standard error, redrawn a few times a second, once
/// it has taken long enough to be wondered about. Elsewhere nothing is shown. One thread.
class SimulateProgress {
 public:
  /// `name`: of what is simulated.
  SimulateProgress(std::string name, int64_t iterations);

  /// Takes the line back.
  ~SimulateProgress();
  SimulateProgress(const SimulateProgress&) = delete;
  SimulateProgress& operator=(const SimulateProgress&) = delete;

  /// So many iterations are simulated.
  void show(int64_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string name_;
  const int64_t iterations_;
  const Abilities able_;
  const Clock::time_point begin_;
  Clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace sluice::cli
