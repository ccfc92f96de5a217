#include "engine/text/schedule_curves.h"

#include <algorithm>

namespace sluice::engine {
namespace {

// A schedule turns only after its warm-up.
ScheduleCurve curve_of(std::string name, std::string text, const ValueSchedule& schedule, int64_t iterations, int64_t points) {
  ScheduleCurve curve{.name = std::move(name), .text = std::move(text), .points = {}};
  const int64_t last = iterations - 1, count = std::min(points, iterations);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t iteration = count == 1 ? 0 : i * last / (count - 1);
    curve.points.push_back({iteration, schedule.at(iteration)});
  }
  const auto [low, high] = std::minmax({schedule.at(0), schedule.at(std::min(schedule.warmup, last)), schedule.at(last)});
  curve.lowest = low, curve.highest = high;
  return curve;
}

}  // namespace

std::vector<ScheduleCurve> schedule_curves(const Plan& plan, int64_t points) {
  const int64_t iterations = plan.pipeline.iterations;
  std::vector<ScheduleCurve> curves;
  for (const PlanModel& model : plan.models) {
    if (const auto& rate = model.facts.learning_rate; rate && model.usage.updated)
      curves.push_back(curve_of("learning rate of " + model.name, rate->text(), *rate, iterations, points));
  }
  for (const PlanNode& node : plan.nodes) {
    for (const NamedSchedule& one : node.needs.schedules) {
      if (!one.number.changes()) continue;
      curves.push_back(curve_of(node.name + "." + one.key, one.number.text(), one.number.schedule(), iterations, points));
    }
  }
  return curves;
}

}  // namespace sluice::engine
