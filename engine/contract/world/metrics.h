#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/world/metric_spec.h"
#include "engine/contract/world/world.h"

namespace sluice::engine {

/// Named metrics of one iteration, in the order in which they are declared.
using MetricRow = std::vector<std::pair<std::string, double>>;

/// What one node records during an iteration. Sums are exact, so a metric does not depend on micro-batches, order or ranks as
/// long as what is recorded does not. Used by the node's executor thread only. To record what is not declared, or in another way
/// than it is declared, throws UserError that names the metric.
class MetricsRecorder {
 public:
  /// Takes every name: for a node alone, outside a pipeline.
  MetricsRecorder() = default;

  /// Takes what is declared. `prefix` is that of prefixed_metric().
  explicit MetricsRecorder(const std::vector<MetricSpec>& declared, std::string prefix = {});

  /// NAME = weighted mean of all values recorded. Without any weight there is no such metric in the row.
  void mean(const std::string& name, double value, double weight = 1);

  /// NAME_mean and NAME_std (population) of all values recorded.
  void moments(const std::string& name, double value);

  void sum(const std::string& name, double value);
  void maximum(const std::string& name, double value);

  /// NAME = the last value recorded, which is the same on every rank.
  void value(const std::string& name, double value);

  /// What was recorded; forgets it. Its layout is that of the declarations, whatever was recorded; what the names of a family
  /// turned out to be comes after them, in alphabetical order.
  Contribution contribution();

  /// Records what another recorder of the same declarations has recorded.
  void add(const Contribution& other);

  /// The row of what all ranks have recorded.
  MetricRow row(Contribution of_all) const;

  /// Both, of a rank that is alone.
  MetricRow take() { return row(contribution()); }

 private:
  Part& part(const std::string& name, Metric kind);
  void add_to(MetricRow& row, const Part& part) const;

  std::string prefix_;
  bool takes_all_ = true;
  std::vector<std::string> families_;  // names that begin so are taken
  size_t declared_ = 0;                // of parts_: the first ones, which stay
  Contribution parts_;
};

}  // namespace sluice::engine
