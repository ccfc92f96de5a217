#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/contract/settings.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// [pipeline] stop_when: looks at each iteration in order and says when the run is to end. A pure function of what it has seen,
/// so a run that goes on shows it what came before. One thread at a time.
class StopRule {
 public:
  explicit StopRule(StopWhen when) : when_(std::move(when)) {}

  const std::string& metric() const { return when_.metric; }

  /// The value of the metric in the next iteration; not a number where it has none. One that is not finite says nothing, as
  /// metrics.jsonl does not keep it. Once it has a reason it keeps that.
  void look_at(int64_t iteration, double value);

  /// The value of the weights before training: what comes must be better than that, but it ends no run, of which it says nothing.
  void begin_with(double value);

  /// Why the run ends after the iteration that was looked at last, as a sentence of the summary says it; empty: it goes on.
  const std::string& reason() const { return reason_; }

  /// The iteration that gave the reason; absent: none did.
  std::optional<int64_t> decided_by() const { return decided_by_; }

 private:
  bool is_better(double value) const;

  StopWhen when_;
  std::optional<double> best_;
  int64_t since_best_ = 0;
  std::string reason_;
  std::optional<int64_t> decided_by_;
};

/// Shows the rule the value of its metric in an iteration of a run.
void show_iteration(StopRule& rule, const Plan& plan, int64_t iteration, double value);

}  // namespace sluice::engine
