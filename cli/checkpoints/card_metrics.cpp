#include "cli/checkpoints/card_metrics.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <vector>

#include "base/text/strings.h"
#include "cli/run_folder/shown_metrics.h"
#include "cli/terminal/ink.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::cli {
namespace {

constexpr size_t kCurveCells = 24;

enum class Better { kHigher, kLower, kNeither };

struct Headline {
  const char* metric;
  Better better;
};

constexpr Headline kHeadlines[] = {{kScoreMetric, Better::kHigher},   {"preference/accuracy", Better::kHigher},
                                   {kLossMetrics[0], Better::kLower}, {kLossMetrics[1], Better::kLower},
                                   {kKlMetric, Better::kNeither},     {"rollout/response_length_mean", Better::kNeither}};

struct Measurement {
  int64_t iteration = 0;
  double value = 0;
};
using Course = std::vector<Measurement>;

Course course_of(const Json& series, const std::string& metric, int64_t iterations) {
  Course course;
  if (!series.contains(metric)) return course;
  const Json &x = series[metric]["x"], &y = series[metric]["y"];
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].get<int64_t>() < iterations) course.push_back({x[i].get<int64_t>(), y[i].get<double>()});
  }
  return course;
}

const Measurement& best_of(const Course& course, Better better) {
  const auto less = [](const Measurement& a, const Measurement& b) { return a.value < b.value; };
  return better == Better::kLower ? *std::ranges::min_element(course, less) : *std::ranges::max_element(course, less);
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string best_text(const Course& course, Better better) {
  if (better == Better::kNeither) return "";
  const Measurement& best = best_of(course, better);
  return short_number(best.value) + " (iteration " + std::to_string(best.iteration + 1) + ")";
}

std::string drawn(const Course& course) {
  std::vector<double> values;
  for (const Measurement& one : course) values.push_back(one.value);
  return curve(values, kCurveCells, /*unicode=*/true);
}

// Metrics that tell of the work and not of the model.
bool is_of_the_work(const std::string& metric) {
  for (const char* group : {"rollout/", "data/", "memory/", "time/", "engine/"}) {
    if (metric.starts_with(group)) return true;
  }
  return metric.ends_with("_std");
}

std::string weights_text(double version) {
  return version == 0 ? "before training" : "after " + plural(static_cast<int64_t>(version), "iteration");
}

}  // namespace

std::string curve_table(const Json& series, int64_t iterations) {
  std::string rows;
  for (const auto& [metric, better] : kHeadlines) {
    const Course course = course_of(series, metric, iterations);
    const bool is_loss = std::ranges::find(kLossMetrics, std::string_view(metric)) != kLossMetrics.end();
    if (course.empty() || (is_loss && series.contains(kScoreMetric))) continue;
    rows += "| `" + std::string(metric) + "` | " + short_number(course.front().value) + " | " +
            short_number(course.back().value) + " | " + best_text(course, better) + " | " + drawn(course) + " |\n";
  }
  return rows.empty() ? rows : "| metric | first | last | best | course |\n|---|---|---|---|---|\n" + rows;
}

std::string evaluation_table(const Json& series, const RecordedPipeline& pipeline, int64_t iterations) {
  std::string rows;
  for (const RecordedPipeline::Node& node : pipeline.nodes()) {
    const std::string prefix = node.name + "/";
    if (!series.contains(prefix + engine::metrics::kGroups)) continue;  // no path begins with it
    const Course versions = course_of(series, prefix + engine::metrics::kPolicyVersion, iterations);
    const auto version_at = [&](const Measurement& one) {
      const auto found = std::ranges::find(versions, one.iteration, &Measurement::iteration);
      return weights_text(found == versions.end() ? static_cast<double>(one.iteration) : found->value);
    };
    const auto described = [&](const Measurement& one) { return " | " + short_number(one.value) + ", " + version_at(one); };
    for (const auto& [name, unused] : series.items()) {
      if (!name.starts_with(prefix) || is_of_the_work(name.substr(prefix.size()))) continue;
      const Course course = course_of(series, name, iterations);
      if (course.empty()) continue;
      rows += "| `" + name + "`" + described(course.front()) + described(course.back()) +
              described(best_of(course, Better::kHigher)) + " |\n";
    }
  }
  return rows.empty() ? rows : "| measured | first | last | highest |\n|---|---|---|---|\n" + rows;
}

}  // namespace sluice::cli
