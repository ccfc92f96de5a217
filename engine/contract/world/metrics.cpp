#include "engine/contract/world/metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/contract/columns/contract_breach.h"

namespace sluice::engine {

MetricsRecorder::MetricsRecorder(const std::vector<MetricSpec>& declared, std::string prefix)
    : prefix_(std::move(prefix)), takes_all_(false) {
  for (const MetricSpec& metric : declared) {
    if (metric.is_family)
      families_.push_back(metric.name);
    else if (std::ranges::find(parts_, metric.name, &Part::name) == parts_.end())
      parts_.push_back({.name = metric.name, .kind = metric.kind});
  }
  declared_ = parts_.size();
}

Part& MetricsRecorder::part(const std::string& name, Metric kind) {
  const auto found = std::ranges::find(parts_, name, &Part::name);
  if (found != parts_.end()) {
    if (found->kind != kind) throw_contract_breach("it records metric '" + name + "' in two ways");
    return *found;
  }
  const bool is_expected =
      takes_all_ || std::ranges::any_of(families_, [&](const std::string& family) { return name.starts_with(family); });
  if (!is_expected) throw_contract_breach("it records metric '" + name + "', which its contract does not declare");
  return parts_.emplace_back(Part{.name = name, .kind = kind});
}

void MetricsRecorder::mean(const std::string& name, double value, double weight) {
  Part& p = part(name, Metric::kMean);
  if (weight == 0) return;  // also keeps a NaN that stands for "no entries" out
  p.numbers.sum.add(weight * value);
  p.numbers.weight.add(weight);
  p.recorded = true;
}

void MetricsRecorder::moments(const std::string& name, double value) {
  Part& p = part(name, Metric::kMoments);
  p.numbers.add(value);
  p.recorded = true;
}

void MetricsRecorder::sum(const std::string& name, double value) {
  Part& p = part(name, Metric::kSum);
  p.numbers.sum.add(value);
  p.recorded = true;
}

void MetricsRecorder::maximum(const std::string& name, double value) { part(name, Metric::kMaximum).raise(value); }

void MetricsRecorder::value(const std::string& name, double value) {
  Part& p = part(name, Metric::kValue);
  p.top = value;
  p.recorded = true;
}

Contribution MetricsRecorder::contribution() {
  Contribution taken = parts_;
  parts_.resize(declared_);
  for (Part& part : parts_) {
    part.numbers = {};
    part.recorded = false;
  }
  return taken;
}

void MetricsRecorder::add(const Contribution& other) {
  for (const Part& recorded : other) part(recorded.name, recorded.kind).add(recorded);
}

// Nothing is told of an iteration that ranks drop (Reductions::abandon_behind()).
MetricRow MetricsRecorder::row(Contribution of_all) const {
  if (of_all.size() < declared_) return {};
  const auto families = of_all.begin() + static_cast<std::ptrdiff_t>(declared_);
  if (!families_.empty()) std::ranges::sort(families, of_all.end(), {}, &Part::name);
  MetricRow row;
  for (const Part& part : of_all) {
    if (part.recorded) add_to(row, part);
  }
  return row;
}

void MetricsRecorder::add_to(MetricRow& row, const Part& part) const {
  const std::string name = prefixed_metric(prefix_, part.name);
  switch (part.kind) {
    case Metric::kMean:
      row.emplace_back(name, part.numbers.mean());
      break;
    case Metric::kMoments:
      row.emplace_back(name + "_mean", part.numbers.mean());
      row.emplace_back(name + "_std", std::sqrt(part.numbers.squared_deviations() / part.numbers.count()));
      break;
    case Metric::kSum:
      row.emplace_back(name, part.numbers.sum.value());
      break;
    case Metric::kMaximum:
    case Metric::kValue:
      row.emplace_back(name, part.top);
      break;
  }
}

}  // namespace sluice::engine
