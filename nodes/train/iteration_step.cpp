#include "nodes/train/iteration_step.h"

#include <utility>

#include "nodes/models/model_parts.h"

namespace sluice::nodes {

IterationStep::IterationStep(const std::string& model, std::string group, std::string total, engine::NodeResources& resources)
    : model_(trained_model(resources, model)),
      group_(std::move(group)),
      total_(std::move(total)),
      pass_tokens_(resources.pass_tokens),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      router_metrics_(*model_, RouterMetrics::kGroup, resources) {}

void IterationStep::begin(const engine::Iteration& iteration) {
  made_ = false;
  begin_training(*model_, iteration, metrics_, group_);
}

void IterationStep::begin_pass(std::vector<double> counted, bool is_last) {
  if (is_last) model_->expect_last_backward();
  router_metrics_.expect(std::move(counted));
}

void IterationStep::record(double loss_sum, double count) {
  metrics_.mean(group_ + "/loss", loss_sum / count, count);
  router_metrics_.record_passes();
  totals_.add(total_, count);
}

bool IterationStep::make() {
  router_metrics_.record_step();
  const double count = totals_.sum_of_all(total_);
  made_ = count > 0;
  if (made_) metrics_.value(group_ + "/grad_norm", step_optimizer(*model_, count));
  return made_;
}

void IterationStep::end(const engine::Iteration& iteration) const {
  if (!made_) warn_of_no_step(*model_, iteration);
}

}  // namespace sluice::nodes
