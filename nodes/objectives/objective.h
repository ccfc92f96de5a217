#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/metrics.h"

namespace sluice::nodes {

/// A figure of one micro-batch, ready to be combined over the iteration.
struct ObjectiveMetric {
  enum class Kind { kMean, kMaximum };

  std::string name;
  Kind kind = Kind::kMean;
  double value = 0;
  double weight = 1;  // kMean: the number of entries behind `value`
};

void record(const std::vector<ObjectiveMetric>& metrics, engine::MetricsRecorder& recorder);

/// A loss as sum and count, so that it does not depend on how actions were packed into micro-batches: the train node divides the
/// sum of the gradients by the count of all actions that go into the optimizer step, over all micro-batches and processes.
struct ObjectiveResult {
  at::Tensor loss_sum;  // scalar, differentiable
  double count = 0;
  std::vector<ObjectiveMetric> metrics;
};

/// What a policy objective sees: A actions, back to back. All of one floating type, on one device.
struct ObjectiveInputs {
  at::Tensor logprobs;      // [A] of the weights that are trained; carries the gradient
  at::Tensor old_logprobs;  // [A] of the weights that sampled; constant; undefined unless the objective reads it
  at::Tensor advantages;    // [A] constant
};

/// A differentiable loss on action log-probabilities, apart from the node that makes the optimizer step. Stateless and immutable:
/// const use from any thread. Every entry counts once (token mean). No actions: a loss_sum of 0 and count 0.
class Objective {
 public:
  static constexpr const char* kComponent = "objective";

  virtual ~Objective() = default;

  virtual bool reads_old_logprobs() const = 0;

  /// True if the gradients are right, up to clipping, for samples of older weights than those that are trained. What reads the
  /// log-probabilities of the weights that sampled is taken to correct with them.
  virtual bool corrects_off_policy() const { return reads_old_logprobs(); }

  virtual ObjectiveResult compute(const ObjectiveInputs& inputs) const = 0;
};

/// What a value objective sees, likewise.
struct ValueObjectiveInputs {
  at::Tensor values;      // [A] of the critic that is trained; carries the gradient
  at::Tensor old_values;  // [A] of the critic before the iteration; constant; undefined unless the objective reads it
  at::Tensor returns;     // [A] constant
};

/// A differentiable loss on the values of actions. The same rules as for Objective.
class ValueObjective {
 public:
  static constexpr const char* kComponent = "value_objective";

  virtual ~ValueObjective() = default;

  virtual bool reads_old_values() const = 0;
  virtual ObjectiveResult compute(const ValueObjectiveInputs& inputs) const = 0;
};

/// Mean over a non-empty `x`, read back to the host.
ObjectiveMetric mean_metric(std::string name, const at::Tensor& x);

}  // namespace sluice::nodes
