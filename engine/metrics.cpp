#include "engine/metrics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace sluice::engine {

MetricsRecorder::Figure& MetricsRecorder::figure(const std::string& name, Kind kind) {
  for (Figure& figure : figures_) {
    if (figure.name != name) continue;
    SLUICE_CHECK(figure.kind == kind, "metric " + name + " is recorded in two ways");
    return figure;
  }
  return figures_.emplace_back(Figure{name, kind});
}

void MetricsRecorder::mean(const std::string& name, double value, double weight) {
  if (weight == 0) return;  // also keeps a NaN that stands for "no entries" out
  Figure& f = figure(name, Kind::kMean);
  f.sum += weight * value;
  f.weight += weight;
}

void MetricsRecorder::moments(const std::string& name, double value) {
  Figure& f = figure(name, Kind::kMoments);
  f.sum += value;
  f.squares += value * value;
  f.weight += 1;
}

void MetricsRecorder::sum(const std::string& name, double value) { figure(name, Kind::kSum).sum += value; }

void MetricsRecorder::maximum(const std::string& name, double value) {
  Figure& f = figure(name, Kind::kMaximum);
  f.sum = f.weight == 0 ? value : std::max(f.sum, value);
  f.weight = 1;
}

void MetricsRecorder::value(const std::string& name, double value) { figure(name, Kind::kValue).sum = value; }

MetricRow MetricsRecorder::take(Reducer& reducer) {
  MetricRow row;
  for (Figure& f : figures_) {
    if (f.kind == Kind::kMean || f.kind == Kind::kMoments || f.kind == Kind::kSum) {
      std::array<double, 3> sums{f.sum, f.squares, f.weight};
      reducer.sum(sums);
      f.sum = sums[0], f.squares = sums[1], f.weight = sums[2];
    }
    if (f.kind == Kind::kMean) row.emplace_back(f.name, f.sum / f.weight);
    if (f.kind == Kind::kSum || f.kind == Kind::kMaximum || f.kind == Kind::kValue) row.emplace_back(f.name, f.sum);
    if (f.kind == Kind::kMoments) {
      const double mean = f.sum / f.weight;
      row.emplace_back(f.name + "_mean", mean);
      row.emplace_back(f.name + "_std", std::sqrt(std::max(0.0, f.squares / f.weight - mean * mean)));
    }
  }
  figures_.clear();
  return row;
}

}  // namespace sluice::engine
