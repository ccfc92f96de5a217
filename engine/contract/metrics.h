#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/metric_spec.h"

namespace sluice::engine {

/// Sums numbers over all processes of a run. The identity in one process; the one seam through which global figures go.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void sum(std::span<double>) {}
};

/// Named metrics of one iteration, in the order in which they are declared.
using MetricRow = std::vector<std::pair<std::string, double>>;

/// What one node records during an iteration. Used by the node's executor thread only, so sums have one order and repeat exactly.
/// To record what is not declared, or in another way than it is declared, throws UserError that names the metric.
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

  /// NAME = the last value recorded.
  void value(const std::string& name, double value);

  /// The row so far; forgets everything. Sums over processes are made of one vector whose layout is that of the declarations, so
  /// that it is the same in every process, whatever was recorded there.
  MetricRow take(Reducer& reducer);

 private:
  struct Figure {
    std::string name;
    Metric kind = Metric::kMean;
    double sum = 0;      // of weight * value; or the maximum, or the value
    double squares = 0;  // of value^2
    double weight = 0;   // 0: not recorded
  };
  Figure& figure(const std::string& name, Metric kind);
  void add_up(std::span<Figure> figures, Reducer& reducer) const;
  void add_to(MetricRow& row, const Figure& figure) const;

  std::string prefix_;
  bool takes_all_ = true;
  std::vector<std::string> families_;  // names that begin so are taken
  size_t declared_ = 0;                // of figures_: the first ones, which stay
  std::vector<Figure> figures_;
};

}  // namespace sluice::engine
