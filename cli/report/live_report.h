#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cli/report/report_run.h"
#include "cli/report/report_sweep.h"

namespace sluice::cli {

/// What a page has of the runs at one moment.
struct ReportState {
  std::string title;
  std::string tag;      // another one for every other content, also of another process
  Json report;          // {"tag", "runs": [RunReport::now(), ...]}
  std::string problem;  // why there is nothing newer; empty: nothing is wrong
};

/// A report about one or several runs that go on. It reads again what a run has changed, at most a twentieth of the time, so
/// that whoever looks does not slow down who trains. Any thread.
class LiveReport {
 public:
  /// Throws UserError naming what is no run.
  explicit LiveReport(std::vector<ReportedRun> reported);

  std::shared_ptr<const ReportState> now();

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<const ReportState> read();
  std::string stamp() const;

  const std::vector<ReportedRun> reported_;
  const std::string born_;  // tells the tags of this process from others
  std::mutex mutex_;
  std::vector<RunReport> runs_;
  std::string stamp_;  // of what was read last
  int64_t read_count_ = 0;
  Clock::time_point not_before_;
  std::shared_ptr<const ReportState> state_;
};

/// All of them at this moment; a run of a sweep has its "combination" too. `title`: their names, and those of sweeps.
ReportState report_state(const std::vector<ReportedRun>& reported, std::vector<RunReport>& runs);

/// A reader of each. Throws UserError naming what is no run.
std::vector<RunReport> readers_of(const std::vector<ReportedRun>& reported, Watch watch);

}  // namespace sluice::cli
