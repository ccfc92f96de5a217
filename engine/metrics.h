#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sluice::engine {

/// Sums numbers over all processes of a run. The identity in one process; the one seam through which global figures go.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void sum(std::span<double>) {}
};

/// Named figures of one iteration, in the order they were first recorded.
using MetricRow = std::vector<std::pair<std::string, double>>;

/// What one node records during an iteration. Used by the node's executor thread only, so sums have one order and repeat exactly.
class MetricsRecorder {
 public:
  /// NAME = weighted mean of all values recorded.
  void mean(const std::string& name, double value, double weight = 1);

  /// NAME_mean and NAME_std (population) of all values recorded.
  void moments(const std::string& name, double value);

  void sum(const std::string& name, double value);
  void maximum(const std::string& name, double value);

  /// NAME = the last value recorded.
  void value(const std::string& name, double value);

  /// The row so far; forgets everything.
  MetricRow take(Reducer& reducer);

 private:
  enum class Kind { kMean, kMoments, kSum, kMaximum, kValue };
  struct Figure {
    std::string name;
    Kind kind;
    double sum = 0;      // of weight * value; or the maximum, or the value
    double squares = 0;  // of value^2
    double weight = 0;
  };
  Figure& figure(const std::string& name, Kind kind);

  std::vector<Figure> figures_;
};

}  // namespace sluice::engine
