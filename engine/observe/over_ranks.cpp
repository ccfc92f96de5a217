#include "engine/observe/over_ranks.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace sluice::engine::metrics {
namespace {

constexpr const char* kMin = "/min";
constexpr const char* kMean = "/mean";
constexpr const char* kMax = "/max";

bool is_of_seconds(const std::string& name) { return name.starts_with("time/"); }

// Nothing of it is recorded where the number is NaN.
Part part_of(std::string name, Metric kind, double number) {
  if (std::isnan(number)) return {.name = std::move(name), .kind = kind, .numbers = {}};
  return {.name = std::move(name), .kind = kind, .numbers = {}, .top = number, .recorded = true};
}

}  // namespace

std::vector<std::string> names_over_ranks(const std::string& name, int ranks) {
  if (ranks == 1) return {name};
  return {name, name + kMin, name + (is_of_seconds(name) ? kMax : kMean)};
}

// Two parts of what is measured: the maximum, which the mean goes along with, and the minimum as a maximum of what is negative.
// After them one value each of what is of the run.
Contribution contribution_of(const MetricRow& measured, const MetricRow& of_run) {
  Contribution parts;
  for (const auto& [name, number] : measured) {
    parts.push_back(part_of(name, Metric::kMaximum, number));
    if (parts.back().recorded) parts.back().numbers.add(number);
    parts.push_back(part_of(name + kMin, Metric::kMaximum, -number));
  }
  for (const auto& [name, number] : of_run) parts.push_back(part_of(name, Metric::kValue, number));
  return parts;
}

MetricRow row_over_ranks(const Contribution& of_all, int ranks) {
  MetricRow row;
  for (size_t i = 0; i < of_all.size(); ++i) {
    const Part& part = of_all[i];
    if (part.kind == Metric::kValue) {
      if (part.recorded) row.emplace_back(part.name, part.top);
      continue;
    }
    SLUICE_CHECK(++i < of_all.size(), "numbers of ranks that contribution_of() did not make");
    if (!part.recorded) continue;
    const double mean = part.numbers.mean(), most = part.top, least = -of_all[i].top;
    const bool seconds = is_of_seconds(part.name);
    const std::vector<std::string> names = names_over_ranks(part.name, ranks);
    const double numbers[] = {seconds ? mean : most, least, seconds ? most : mean};
    for (size_t k = 0; k < names.size(); ++k) row.emplace_back(names[k], numbers[k]);
  }
  return row;
}

}  // namespace sluice::engine::metrics
