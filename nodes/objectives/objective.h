#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/contract/world/metrics.h"
#include "nodes/objectives/step_sums.h"

namespace sluice::nodes {

/// A metric of one micro-batch, ready to be combined over the iteration.
struct ObjectiveMetric {
  enum class Kind { kMean, kMaximum };

  std::string name;
  Kind kind = Kind::kMean;
  double value = 0;
  double weight = 1;  // kMean: the number of entries after `value`
};

void record(const std::vector<ObjectiveMetric>& metrics, engine::MetricsRecorder& recorder);

/// A loss as sum and count, so that it does not depend on how samples were packed into micro-batches: the train node divides the
/// sum of the gradients by the count of all that goes into the optimizer step, over all micro-batches and processes.
struct ObjectiveResult {
  at::Tensor loss_sum;  // scalar, differentiable
  double count = 0;     // of actions or samples, whatever the loss is a mean over
  std::vector<ObjectiveMetric> metrics;
};

/// Which columns a policy objective reads beside log-probabilities, advantages and mask.
struct ObjectiveNeeds {
  bool old_logprobs = false;
  bool rollout_logprobs = false;
  bool reference_logprobs = false;
  bool entropy = false;
  bool draws = false;
};

/// What a policy objective sees: A actions of S whole samples, back to back. All of one floating type, on one device; what the
/// objective does not need is undefined.
struct ObjectiveInputs {
  at::Tensor logprobs;                  // [A] of the weights that are trained; carries the gradient
  at::Tensor old_logprobs;              // [A] constant; of the proximal policy, from which a ratio is taken
  at::Tensor rollout_logprobs;          // [A] constant; of the weights that sampled (behaviour policy)
  at::Tensor reference_logprobs;        // [A] constant; of a frozen model
  at::Tensor entropy;                   // [A] of the weights that are trained, in nats; carries the gradient
  at::Tensor advantages;                // [A] constant
  at::Tensor mask;                      // [A] constant; how much an action counts, 0: not at all; undefined: 1 each
  std::vector<int64_t> action_offsets;  // [S+1] where the actions of each sample begin
  int64_t iteration = 0;                // of the run, that the samples belong to: what scheduled numbers follow
  at::Tensor draws = {};                // [A] int64, 32 random bits of each action, whatever it is packed with (action_draws.h)
  std::vector<double> step = {};        // what the objective's looks have found; empty unless it looks at the step
};

/// A differentiable loss on action log-probabilities, apart from the node that makes the optimizer step. Stateless and immutable:
/// const use from any thread. Nothing that counts: a loss_sum of 0 and count 0. Most derive from PolicyObjective (policy_loss.h).
///
/// The loss of a sample may depend on all samples of the optimizer step, over all micro-batches and ranks: then the objective
/// looks at them first, looks() times. In each look it adds to sums that no packing changes, and what it finds in those of all
/// ranks is there in the next look and in compute(). The trainer computes the log-probabilities once more for it, under the
/// weights before the step.
class Objective {
 public:
  static constexpr const char* kComponent = "objective";

  virtual ~Objective() = default;

  virtual ObjectiveNeeds needs() const = 0;

  /// True if the gradients are right, up to clipping, for samples of older weights than those that are trained, when old_logprobs
  /// are those of the weights that sampled.
  virtual bool corrects_off_policy() const { return needs().old_logprobs; }

  /// True if the count is always that of the actions (the sum of the mask), as it is in a value objective: then the two can be
  /// added.
  virtual bool counts_actions() const { return false; }

  virtual int looks() const { return 0; }

  /// Adds what look `look` is to find of some samples of the step: `inputs` as for compute(), the log-probabilities constant and
  /// the entropies undefined.
  virtual void look_at(int /*look*/, const ObjectiveInputs& /*inputs*/, StepSums& /*sums*/) const {}

  /// What look `look` finds, from the sums over the whole step; `found` by the one before it, empty at first.
  virtual std::vector<double> find(int /*look*/, const std::vector<double>& found, const StepSums& /*of_all*/) const {
    return found;
  }

  virtual ObjectiveResult compute(const ObjectiveInputs& inputs) const = 0;
};

/// What the looks of `objective` find in a step that is at hand as a whole, in parts as they are packed.
std::vector<double> found_in_step(const Objective& objective, std::vector<ObjectiveInputs> step);

/// What a value objective sees, likewise.
struct ValueObjectiveInputs {
  at::Tensor values;      // [A] of the critic that is trained; carries the gradient
  at::Tensor old_values;  // [A] of the critic before the iteration; constant; undefined unless the objective reads it
  at::Tensor returns;     // [A] constant
  at::Tensor mask;        // [A] constant; undefined: 1 each
  int64_t iteration = 0;  // as above
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

/// Maximum of a non-empty `x`, likewise.
ObjectiveMetric maximum_metric(std::string name, const at::Tensor& x);

}  // namespace sluice::nodes
