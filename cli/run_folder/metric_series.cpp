#include "cli/run_folder/metric_series.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_folder/metrics_file.h"

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

void RunSeries::read() {
  if (lines_.look()) metrics_.clear(), places_.clear(), damage_.clear(), taken_ = 0;
  const auto take = [this](int64_t iteration, const std::string& name, double value) {
    const auto [found, is_new] = places_.try_emplace(name, metrics_.size());
    if (is_new) metrics_.emplace_back(name, std::vector<Point>{});
    metrics_[found->second].second.emplace_back(iteration, value);
  };
  take_metrics(lines_, taken_, take, damage_);
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
