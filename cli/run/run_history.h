#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "cli/terminal/ink.h"
#include "engine/observe/iteration_log.h"
#include "engine/plan/plan.h"
#include "engine/run/run.h"

namespace sluice::cli {

/// What the display and the summary tell about a run, gathered from its iterations. Thread-safe.
class RunHistory {
 public:
  /// `iterations_before` are complete when the run begins.
  RunHistory(const engine::Plan& plan, int64_t iterations_before);

  void add(const engine::IterationReport& report);

  /// `iteration 41/120   score 0.812   KL 0.021   9.8k tok/s`, of the latest iteration, and the pace of the last few: one that
  /// measures ends when the next one may be nearly done, so the pace of one alone says little. Empty before the first.
  std::vector<Piece> latest() const;

  /// The score, or the loss where there is none, of the last `iterations` (all: 0), in at most `width` cells; see curve().
  std::string score_curve(size_t iterations, size_t width, bool unicode) const;

  /// Seconds that the rest will take at the pace so far; 0 before the first iteration.
  double seconds_left() const;

  /// What stands at the end of a run, about what it did itself, without a newline at the end of the last line. With a cursor,
  /// that is on a terminal, there is a curve of the score.
  std::string summary(const engine::RunSummary& run, const std::string& folder, const Abilities& able) const;

 private:
  struct Totals {
    double samples = 0, sampled_tokens = 0, tokens = 0;
    double seconds = 0, rollout_seconds = 0, train_seconds = 0, overlap_seconds = 0;
    double tokens_in_flight_max = 0;
  };

  struct Pace {
    double tokens = 0, seconds = 0;
  };

  /// What a path beside the main one has measured.
  struct Measured {
    const engine::PlanPath* path = nullptr;
    std::string source;  // its name
    struct Value {
      int64_t iteration = 0;
      double value = 0;
    };
    std::vector<Value> values;  // of its score, or its loss
  };

  void add_measured(const engine::IterationReport& report);
  double tokens_per_second() const;
  std::string score_text(const Abilities& able) const;
  static std::string measured_text(const Measured& measured);
  std::string result_text() const;
  std::string dropped_text() const;
  std::string folder_text(const engine::RunSummary& run, const std::string& folder) const;

  const engine::Plan& plan_;
  const int64_t before_;
  mutable std::mutex mutex_;
  engine::IterationReport latest_;
  int64_t iterations_ = 0;  // those of this run
  Totals totals_;
  std::deque<Pace> last_;        // of the last few iterations
  std::string target_;           // the metric that is to improve; empty: none
  std::vector<double> targets_;  // its values
  std::vector<Measured> measured_;
};

}  // namespace sluice::cli
