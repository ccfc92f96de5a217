#include "engine/observe/iteration_log.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::engine {

double IterationReport::metric(const std::string& name) const {
  const auto found = std::ranges::find(metrics, name, &MetricRow::value_type::first);
  return found == metrics.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
}

void IterationLog::node_ended(int64_t iteration, size_t node, MetricRow row) {
  const std::lock_guard lock(mutex_);
  OpenIteration& pending = open_[iteration];
  pending.rows.resize(nodes_);
  pending.rows[node] = std::move(row);
  ++pending.ended;
  // What other ranks add may come later for an iteration than for the next.
  while (!open_.empty() && open_.begin()->first == reported_ && open_.begin()->second.ended == nodes_) {
    IterationReport report{.iteration = open_.begin()->first, .metrics = {}};
    for (const MetricRow& row : open_.begin()->second.rows) {
      report.metrics.insert(report.metrics.end(), row.begin(), row.end());
    }
    open_.erase(open_.begin());
    close_(report);
    report_(report);
    ++reported_;
    on_reported_();
  }
}

}  // namespace sluice::engine
