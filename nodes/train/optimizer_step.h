#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/trained_model.h"

namespace sluice::nodes {

/// The beginning of an iteration: its learning rate, recorded as GROUP/learning_rate. Every step of the iteration has it, however
/// many there are.
void begin_training(TrainedModel& model, const engine::Iteration& iteration, engine::MetricsRecorder& metrics,
                    const std::string& group);

/// Declares what begin_training() records.
template <class P>
void describe_learning_rate(engine::Contract<P>& c, const std::string& group) {
  c.metric(group + "/learning_rate", engine::Metric::kValue, "of the iteration");
}

/// Declares the norm of the gradients of an iteration that has one step.
template <class P>
void describe_gradient_norm(engine::Contract<P>& c, const std::string& group) {
  c.metric(group + "/grad_norm", engine::Metric::kValue, "norm of all gradients before clipping");
}

/// Adds the gradient of `loss_sum` (a scalar) to those of the weights, and returns its value. Throws UserError, before any
/// gradient is added, when it is not finite; `what` is how the message calls it ("policy loss").
double accumulate_gradient(const at::Tensor& loss_sum, const std::string& what);

/// Throws UserError unless all gradients of `model` are finite. For steps of several models that must be made together or not at
/// all.
void require_finite_gradients(TrainedModel& model);

/// One optimizer step with the gradients, accumulated as sums, divided by `count` > 0. Clears them. Returns their norm before
/// clipping. Throws UserError, with all weights as they were, when it is not finite.
double step_optimizer(TrainedModel& model, double count);

/// An iteration in which nothing was left to learn from is no error, but rarely meant.
void warn_of_no_step(const TrainedModel& model, const engine::Iteration& iteration);

}  // namespace sluice::nodes
