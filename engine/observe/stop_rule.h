#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/contract/settings.h"
#include "engine/observe/iteration_log.h"

namespace sluice::engine {

/// [pipeline] stop_when: looks at each iteration in order and says when the run is to end. A pure function of what it has seen, so
/// a run that goes on shows it what came before. One thread at a time.
class StopRule {
 public:
  explicit StopRule(StopWhen when) : when_(std::move(when)) {}

  const std::string& metric() const { return when_.metric; }

  /// The value of the metric in the next iteration; not a number where it has none. Once it has a reason it keeps that.
  void look_at(int64_t iteration, double value);

  /// Why the run ends behind the iteration that was looked at last, as a sentence of the summary says it; empty: it goes on.
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

}  // namespace sluice::engine
