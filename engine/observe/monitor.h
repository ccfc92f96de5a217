#pragma once

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>

#include "base/problem.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/clock.h"
#include "engine/observe/status.h"

namespace sluice::engine {

/// Watches a run from a thread of its own: writes `RUN/status.json` twice a second, and ends a run in which nothing has got on
/// for so long that it must hang. Time in which the whole process stood still (stopped by a signal, frozen with its container)
/// does not count.
class Monitor {
 public:
  struct Options {
    const Clock& clock;        // outlives this
    RunFolder folder;          // without a path nothing is written
    double stall_seconds = 0;  // 0: never
  };

  /// `status` is asked about the run, `progress` for a count that grows when anything gets on. `on_stall` gets the message to
  /// fail the run with, once. All are called on the monitor's thread.
  Monitor(Options options, std::function<RunStatus()> status, std::function<int64_t()> progress,
          std::function<void(Problem)> on_stall);

  /// Ends the thread.
  ~Monitor();

  /// Writes the last status; afterwards the thread writes none. Throws UserError (disk full).
  void finish(RunStatus status);

 private:
  void loop();
  void write(const RunStatus& status);
  void watch(double passed_seconds);

  const Options options_;
  const std::function<RunStatus()> status_;
  const std::function<int64_t()> progress_;
  const std::function<void(Problem)> on_stall_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ending_ = false;
  int64_t last_progress_ = -1;
  double unchanged_seconds_ = 0;
  bool told_ = false;
  std::thread thread_;
};

/// The message of a run that hangs: who works on what for how long, what every other node waits for, what is on every edge.
Problem stall_problem(const RunStatus& status, double stall_seconds);

}  // namespace sluice::engine
