#include "nodes/train/optimizer_step.h"

#include <cmath>

#include "base/error.h"
#include "base/log.h"

namespace sluice::nodes {

namespace {

std::string text_of(double not_finite) { return std::isnan(not_finite) ? "nan" : not_finite > 0 ? "inf" : "-inf"; }

[[noreturn]] void refuse_gradient(const TrainedModel& model, double norm) {
  throw UserError(
      "gradient norm is not finite (" + text_of(norm) + "): the weights of model " + model.name() + " were left as they were",
      "a lower learning_rate, or clip_grad_norm in the optimizer");
}

}  // namespace

void begin_training(TrainedModel& model, const engine::Iteration& iteration, engine::MetricsRecorder& metrics,
                    const std::string& group) {
  metrics.value(group + "/learning_rate", model.enter_iteration(iteration.index));
}

double accumulate_gradient(const at::Tensor& loss_sum, const std::string& what) {
  const double value = loss_sum.detach().item().toDouble();
  if (!std::isfinite(value)) {
    throw UserError(
        what + " is not finite (" + text_of(value) + "): the weights were left as they were",
        "weights that have diverged do that (a lower learning_rate, or clip_grad_norm), and so do rewards that are not finite");
  }
  loss_sum.backward();
  return value;
}

void require_finite_gradients(TrainedModel& model) {
  const double norm = model.optimizer().gradient_norm(1.0);
  if (!std::isfinite(norm)) refuse_gradient(model, norm);
}

double step_optimizer(TrainedModel& model, double count) {
  SLUICE_CHECK(count > 0, "a step without entries: " + model.name());
  const double norm = model.step(1.0 / count);
  if (!std::isfinite(norm)) refuse_gradient(model, norm);
  return norm;
}

void warn_of_no_step(const TrainedModel& model, const engine::Iteration& iteration) {
  log_warning("iteration " + std::to_string(iteration.index) + ": model " + model.name() +
              " was not trained, because nothing was left to learn from");
}

}  // namespace sluice::nodes
