#include "cli/plan/plan_plot.h"

#include <algorithm>
#include <cstdio>

#include "base/json/json.h"
#include "base/text/strings.h"
#include "cli/pipeline/load.h"
#include "cli/plan/commands.h"
#include "cli/plan/problems.h"
#include "cli/process/exit_codes.h"
#include "cli/terminal/dot_plot.h"
#include "cli/terminal/ink.h"
#include "cli/terminal/terminal.h"
#include "engine/text/schedule_curves.h"

namespace sluice::cli {
namespace {

using engine::ScheduleCurve;

constexpr size_t kNumber = 10, kHeight = 4, kLeast = 40;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// Beside the numbers of the axis.
size_t cells(size_t width) { return std::max(width, kLeast) - kNumber - 2; }

std::vector<ScheduleCurve> curves_of(const engine::Plan& plan, size_t width, bool unicode) {
  return engine::schedule_curves(plan, static_cast<int64_t>(cells(width) * values_of_cell(unicode)));
}

std::string facts_text(const ScheduleCurve& curve) {
  return "first " + number_text(curve.points.front().value) + "   last " + number_text(curve.points.back().value) + "   min " +
         number_text(curve.lowest) + "   max " + number_text(curve.highest);
}

std::string curve_text(const ScheduleCurve& curve, size_t width, bool unicode) {
  std::vector<double> values;
  for (const ScheduleCurve::Point& point : curve.points) values.push_back(point.value);
  const bool flat = curve.lowest == curve.highest;
  const std::vector<std::string> lines = dot_plot(values, cells(width), flat ? 1 : kHeight, unicode);
  std::string text = curve.name + (curve.text.empty() ? "" : ": " + curve.text) + "\n  " + facts_text(curve) + "\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string number = i == 0 ? number_text(curve.highest) : i + 1 == lines.size() ? number_text(curve.lowest) : "";
    text += padded_before(number, kNumber) + (unicode ? " ┤" : " |") + lines[i] + "\n";
  }
  const std::string first = "0", last = std::to_string(curve.points.back().iteration);
  return text + std::string(kNumber + 2, ' ') + first + padded_before(last, cells(width) - first.size()) + "\n";
}

Json curve_json(const ScheduleCurve& curve) {
  Json points = Json::array();
  for (const ScheduleCurve::Point& point : curve.points) points.push_back(Json::array({point.iteration, point.value}));
  return {
      {"name", curve.name},  {"schedule", curve.text}, {"first", curve.points.front().value}, {"last", curve.points.back().value},
      {"min", curve.lowest}, {"max", curve.highest},   {"points", std::move(points)}};
}

}  // namespace

std::string plot_text(const engine::Plan& plan, size_t width, bool unicode) {
  std::string text = plan.pipeline.name + ": " + plural(plan.pipeline.iterations, "iteration") + "\n";
  const std::vector<ScheduleCurve> curves = curves_of(plan, width, unicode);
  if (curves.empty()) text += "\nnothing is trained, and no number is scheduled\n";
  for (const ScheduleCurve& curve : curves) text += "\n" + curve_text(curve, width, unicode);
  return text;
}

std::string plot_json(const engine::Plan& plan, size_t width, bool unicode) {
  Json json{{"pipeline", plan.pipeline.name}, {"iterations", plan.pipeline.iterations}, {"schedules", Json::array()}};
  for (const ScheduleCurve& curve : curves_of(plan, width, unicode)) json["schedules"].push_back(curve_json(curve));
  return json.dump() + "\n";
}

int plot_plan(const PipelineArguments& arguments, const std::string& format) {
  const LoadedPipeline loaded = load_pipeline(arguments);
  print_warnings(loaded.warnings);
  const size_t width = terminal_size().columns;
  const bool unicode = abilities_of(stdout).unicode;
  print_text(format == "json" ? plot_json(loaded.plan, width, unicode) : plot_text(loaded.plan, width, unicode));
  return kDone;
}

}  // namespace sluice::cli
