#include "nodes/objectives/objective.h"

namespace sluice::nodes {

void record(const std::vector<ObjectiveMetric>& metrics, engine::MetricsRecorder& recorder) {
  for (const ObjectiveMetric& metric : metrics) {
    if (metric.kind == ObjectiveMetric::Kind::kMaximum) {
      recorder.maximum(metric.name, metric.value);
    } else {
      recorder.mean(metric.name, metric.value, metric.weight);
    }
  }
}

std::vector<double> found_in_step(const Objective& objective, std::vector<ObjectiveInputs> step) {
  std::vector<double> found;
  for (int look = 0; look < objective.looks(); ++look) {
    StepSums sums;
    for (ObjectiveInputs& part : step) {
      part.step = found;
      objective.look_at(look, part, sums);
    }
    found = objective.find(look, found, sums);
  }
  return found;
}

ObjectiveMetric mean_metric(std::string name, const at::Tensor& x) {
  const double mean = x.detach().to(at::kDouble).mean().item().toDouble();
  return {.name = std::move(name), .value = mean, .weight = static_cast<double>(x.numel())};
}

ObjectiveMetric maximum_metric(std::string name, const at::Tensor& x) {
  return {.name = std::move(name), .kind = ObjectiveMetric::Kind::kMaximum, .value = x.detach().max().item().toDouble()};
}

}  // namespace sluice::nodes
