#include "cli/report_series.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/report_files.h"
#include "data/row_file.h"

namespace sluice::cli {
namespace {

constexpr size_t kStretches = 200;  // of each metric, two points at most in each

using Point = std::pair<int64_t, double>;

// Six digits: more than a plot shows, a third of the bytes.
double shortened_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= 2 * kStretches) return points;
  std::vector<Point> kept;
  for (size_t i = 0; i < kStretches; ++i) {
    const auto begin = points.begin() + static_cast<ptrdiff_t>(i * points.size() / kStretches);
    const auto end = points.begin() + static_cast<ptrdiff_t>((i + 1) * points.size() / kStretches);
    auto [low, high] = std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.second < b.second; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

using Metrics = std::vector<std::pair<std::string, std::vector<Point>>>;  // in the order of the file

Metrics read_metrics(const std::filesystem::path& path) {
  const data::RowFile file(path);
  Metrics metrics;
  int64_t number = 0;
  for (const std::string_view line : whole_lines(file.text())) {
    ++number;
    const Json row = parse_json(line, path.string() + ", line " + std::to_string(number));
    if (!row.is_object() || !row.contains("iteration") || !row["iteration"].is_number_integer())
      throw UserError("line " + std::to_string(number) + " of " + path.string() + " is no metrics of an iteration");
    const auto iteration = row["iteration"].get<int64_t>();
    for (const auto& [name, value] : row.items()) {
      if (name == "iteration" || !value.is_number()) continue;
      auto found = std::ranges::find(metrics, name, &Metrics::value_type::first);
      if (found == metrics.end()) found = metrics.insert(metrics.end(), {name, {}});
      found->second.emplace_back(iteration, value.get<double>());
    }
  }
  return metrics;
}

void add_series(const std::string& name, const std::vector<Point>& points, Json& series) {
  Json x = Json::array(), y = Json::array();
  for (const auto& [iteration, value] : points) x.push_back(iteration), y.push_back(shortened_number(value));
  series[name] = {{"x", std::move(x)}, {"y", std::move(y)}};
}

}  // namespace

Json metric_series(const std::filesystem::path& path) {
  Json series = Json::object();
  for (const auto& [name, points] : read_metrics(path)) add_series(name, points, series);
  return series;
}

Json report_series(const std::filesystem::path& path) {
  Json series = Json::object();
  for (const auto& [name, points] : read_metrics(path)) add_series(name, thinned(points), series);
  return series;
}

}  // namespace sluice::cli
