#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/contract/world/metrics.h"

namespace sluice::engine {

/// What an iteration amounted to. `metrics` is the line of metrics.jsonl: what depends on timing is in the groups time/, memory/
/// and engine/; everything else repeats exactly.
struct IterationReport {
  int64_t iteration = 0;
  MetricRow metrics;

  /// NaN when there is no such metric.
  double metric(const std::string& name) const;
};

/// Puts together what the nodes record. An iteration is reported once every node has ended it, and iterations are reported in
/// order. Thread-safe.
class IterationLog {
 public:
  /// `close` completes the metrics of an iteration (with the run-wide peaks and seconds); `report` gets the result; `on_reported`
  /// is called once reported() counts it. All are called with the log's lock held, by the thread of the node that ended last.
  /// `begun`: iterations that count as reported.
  IterationLog(size_t nodes, int64_t begun, std::function<void(IterationReport&)> close,
               std::function<void(const IterationReport&)> report, std::function<void()> on_reported)
      : nodes_(nodes),
        close_(std::move(close)),
        report_(std::move(report)),
        on_reported_(std::move(on_reported)),
        reported_(begun) {}

  /// Node `node` (its index in the plan, which orders the metrics) has ended the iteration.
  void node_ended(int64_t iteration, size_t node, MetricRow row);

  /// Iterations that were reported so far. Takes no lock: `report` may ask.
  int64_t reported() const { return reported_.load(); }

 private:
  struct OpenIteration {
    std::vector<MetricRow> rows;
    size_t ended = 0;
  };

  const size_t nodes_;
  const std::function<void(IterationReport&)> close_;
  const std::function<void(const IterationReport&)> report_;
  const std::function<void()> on_reported_;
  std::mutex mutex_;
  std::map<int64_t, OpenIteration> open_;
  std::atomic<int64_t> reported_;
};

}  // namespace sluice::engine
