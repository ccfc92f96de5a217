#include "engine/observe/over_ranks.h"

#include <utility>

#include "base/error.h"

namespace sluice::engine::metrics {
namespace {

constexpr const char* kMin = "/min";
constexpr const char* kMean = "/mean";
constexpr const char* kMax = "/max";

bool is_of_seconds(const std::string& name) { return name.starts_with("time/"); }

Part most_of(std::string name, double number) {
  return {.name = std::move(name), .kind = Metric::kMaximum, .numbers = {}, .top = number, .recorded = true};
}

}  // namespace

std::vector<std::string> names_over_ranks(const std::string& name, int ranks) {
  if (ranks == 1) return {name};
  return {name, name + kMin, name + (is_of_seconds(name) ? kMax : kMean)};
}

// Two parts each: the maximum, which the mean goes along with, and the minimum as a maximum of what is negative.
Contribution contribution_of(const MetricRow& measured) {
  Contribution parts;
  for (const auto& [name, number] : measured) {
    parts.push_back(most_of(name, number));
    parts.back().numbers.add(number);
    parts.push_back(most_of(name + kMin, -number));
  }
  return parts;
}

MetricRow row_over_ranks(const Contribution& of_all, int ranks) {
  SLUICE_CHECK(of_all.size() % 2 == 0, "numbers of ranks that contribution_of() did not make");
  MetricRow row;
  for (size_t i = 0; i < of_all.size(); i += 2) {
    const Part& part = of_all[i];
    const double mean = part.numbers.mean(), most = part.top, least = -of_all[i + 1].top;
    const bool seconds = is_of_seconds(part.name);
    const std::vector<std::string> names = names_over_ranks(part.name, ranks);
    const double numbers[] = {seconds ? mean : most, least, seconds ? most : mean};
    for (size_t k = 0; k < names.size(); ++k) row.emplace_back(names[k], numbers[k]);
  }
  return row;
}

}  // namespace sluice::engine::metrics
