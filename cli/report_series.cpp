#include "cli/report_series.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::cli {
namespace {

constexpr size_t kStretches = 199;  // of each metric, two points at most in each; and the last point

// Six digits: more than a plot shows, a third of the bytes.
double shortened_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

template <class Point>
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
  if (kept.back() != points.back()) kept.push_back(points.back());
  return kept;
}

template <class Point>
void add_series(const std::string& name, const std::vector<Point>& points, Json& series) {
  Json x = Json::array(), y = Json::array();
  for (const auto& [iteration, value] : points) x.push_back(iteration), y.push_back(shortened_number(value));
  series[name] = {{"x", std::move(x)}, {"y", std::move(y)}};
}

}  // namespace

void RunSeries::take(const std::string& line, const std::string& place) {
  const Json row = parse_json(line, place);
  if (!row.is_object() || !row.contains("iteration") || !row["iteration"].is_number_integer())
    throw UserError(place + " is no metrics of an iteration");
  const auto iteration = row["iteration"].get<int64_t>();
  for (const auto& [name, value] : row.items()) {
    if (name == "iteration" || !value.is_number()) continue;
    const auto [found, is_new] = places_.try_emplace(name, metrics_.size());
    if (is_new) metrics_.emplace_back(name, std::vector<Point>{});
    metrics_[found->second].second.emplace_back(iteration, value.get<double>());
  }
}

void RunSeries::read() {
  constexpr size_t kAtOnce = 256;  // lines
  if (lines_.look()) metrics_.clear(), places_.clear(), taken_ = 0;
  while (taken_ < lines_.size()) {
    for (const std::string& line : lines_.read(taken_, std::min(lines_.size(), taken_ + kAtOnce))) {
      take(line, lines_.place(taken_));
      ++taken_;
    }
  }
}

Json RunSeries::now() {
  read();
  Json series = Json::object();
  for (const auto& [name, points] : metrics_) add_series(name, points, series);
  return series;
}

Json RunSeries::thinned_now() {
  read();
  Json series = Json::object();
  for (const auto& [name, points] : metrics_) add_series(name, thinned(points), series);
  return series;
}

}  // namespace sluice::cli
