#include "engine/contract/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/contract/contract_breach.h"

namespace sluice::engine {
namespace {

bool is_summed(Metric kind) { return kind == Metric::kMean || kind == Metric::kMoments || kind == Metric::kSum; }

}  // namespace

MetricsRecorder::MetricsRecorder(const std::vector<MetricSpec>& declared, std::string prefix)
    : prefix_(std::move(prefix)), takes_all_(false) {
  for (const MetricSpec& metric : declared) {
    if (metric.is_family)
      families_.push_back(metric.name);
    else if (std::ranges::find(figures_, metric.name, &Figure::name) == figures_.end())
      figures_.push_back({metric.name, metric.kind});
  }
  declared_ = figures_.size();
}

MetricsRecorder::Figure& MetricsRecorder::figure(const std::string& name, Metric kind) {
  const auto found = std::ranges::find(figures_, name, &Figure::name);
  if (found != figures_.end()) {
    if (found->kind != kind) throw_contract_breach("it records metric '" + name + "' in two ways");
    return *found;
  }
  const bool is_expected =
      takes_all_ || std::ranges::any_of(families_, [&](const std::string& family) { return name.starts_with(family); });
  if (!is_expected) throw_contract_breach("it records metric '" + name + "', which its contract does not declare");
  return figures_.emplace_back(Figure{name, kind});
}

void MetricsRecorder::mean(const std::string& name, double value, double weight) {
  Figure& f = figure(name, Metric::kMean);
  if (weight == 0) return;  // also keeps a NaN that stands for "no entries" out
  f.sum += weight * value;
  f.weight += weight;
}

void MetricsRecorder::moments(const std::string& name, double value) {
  Figure& f = figure(name, Metric::kMoments);
  f.sum += value;
  f.squares += value * value;
  f.weight += 1;
}

void MetricsRecorder::sum(const std::string& name, double value) {
  Figure& f = figure(name, Metric::kSum);
  f.sum += value;
  f.weight += 1;
}

void MetricsRecorder::maximum(const std::string& name, double value) {
  Figure& f = figure(name, Metric::kMaximum);
  f.sum = f.weight == 0 ? value : std::max(f.sum, value);
  f.weight = 1;
}

void MetricsRecorder::value(const std::string& name, double value) {
  Figure& f = figure(name, Metric::kValue);
  f.sum = value;
  f.weight = 1;
}

MetricRow MetricsRecorder::take(Reducer& reducer) {
  const std::span<Figure> all(figures_);
  add_up(all.first(declared_), reducer);
  add_up(all.subspan(declared_), reducer);
  MetricRow row;
  for (Figure& figure : figures_) {
    if (figure.weight != 0) add_to(row, figure);
    figure.sum = figure.squares = figure.weight = 0;
  }
  figures_.resize(declared_);
  return row;
}

void MetricsRecorder::add_up(std::span<Figure> figures, Reducer& reducer) const {
  std::vector<double> sums;  // three of each metric
  for (const Figure& f : figures) {
    if (is_summed(f.kind)) sums.insert(sums.end(), {f.sum, f.squares, f.weight});
  }
  if (sums.empty()) return;
  reducer.sum(sums);
  auto next = sums.begin();
  for (Figure& f : figures) {
    if (is_summed(f.kind)) f.sum = *next++, f.squares = *next++, f.weight = *next++;
  }
}

void MetricsRecorder::add_to(MetricRow& row, const Figure& f) const {
  const std::string name = prefixed_metric(prefix_, f.name);
  const double mean = f.sum / f.weight;
  switch (f.kind) {
    case Metric::kMean:
      row.emplace_back(name, mean);
      break;
    case Metric::kMoments:
      row.emplace_back(name + "_mean", mean);
      row.emplace_back(name + "_std", std::sqrt(std::max(0.0, f.squares / f.weight - mean * mean)));
      break;
    case Metric::kSum:
    case Metric::kMaximum:
    case Metric::kValue:
      row.emplace_back(name, f.sum);
      break;
  }
}

}  // namespace sluice::engine
