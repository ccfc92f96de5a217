#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/forward/forward.h"
#include "nodes/objectives/objective.h"
#include "nodes/statistics/moments.h"
#include "nodes/train/actor_critic.h"
#include "nodes/train/on_policy.h"
#include "nodes/train/ppo_calendar.h"
#include "nodes/train/ppo_gradients.h"
#include "nodes/train/ppo_minibatches.h"
#include "nodes/train/ppo_pass.h"

namespace sluice::nodes {

/// Trains a policy, and a critic if there is one, on the advantages of an iteration (PPO, GRPO and their relatives).
///
///   [nodes.train]
///   type = "train_ppo"
///   inputs = ["advantages"]
///   actor = "actor"
///   critic = "critic"                      # optional; head = "value"
///   epochs = 1                             # times that it goes over the iteration
///   mini_batches = 1                       # optimizer steps each time; groups are dealt out to them at random
///   objective = "ppo_clip"                 # or a table with its parameters
///   value_objective = "value_clip"
///   value_coefficient = 1.0                # where actor and critic are one model: weight of the value objective in the sum
///   old_logprobs = "rollout_logprobs"      # the column from which ratios are taken: of the weights that sampled
///   recompute_old_logprobs = false         # true: of the weights before the iteration's first step, computed here
///   on_policy = "measured"                 # or "exact": the run ends where a sample is not, bit for bit, of the weights that train
///   whiten_advantages = false              # true: zero mean and unit variance over the actions of each optimizer step
///   whiten_variance = "bessel"             # or "biased"
///   temperature = 1.0                      # as in generate
///   replay_routes = false                  # of a mixture of experts: tokens go through the experts that sampled them
///
/// Actor and critic may be one model with head = "policy+value": then one pass gives both, and one step is made on the sum of the
/// two losses, which both are means over actions.
///
/// Reads tokens[T], advantages[A], routes[S] if they are replayed, and as the objectives need them old log-probabilities[A],
/// returns[A], values[A], rollout_logprobs[A], reference_logprobs[A]. Reads mask[A] if a node writes it: an action counts that
/// much, and a sample all of whose actions count 0 is not computed at all. Reads rollout_logprobs and reference_logprobs for its
/// metrics if they are there. Gradients accumulate as sums and are divided by the objective's count over the step and all ranks:
/// how groups are packed into micro-batches, and these are cut into passes of [budget] pass_tokens, changes nothing but rounding.
/// With one epoch and one mini-batch the gradients are taken as micro-batches arrive, and the step is made at the end of the
/// iteration; otherwise the node is a barrier. So it is for an objective whose loss depends on the whole step
/// (Objective::looks()): ahead of each step the log-probabilities of its samples are computed once more, under the weights as
/// they are then; where they are known (before the first step, with recompute_old_logprobs or on_policy = "exact") they are not.
/// A mini-batch without actions makes no step, an iteration without any a warning. A loss or a gradient that is not finite is a
/// UserError, before a weight has changed in that step.
struct TrainPpoParams {
  std::string actor;
  std::string critic;
  int64_t epochs = 1;
  int64_t mini_batches = 1;
  engine::Component<Objective> objective{.type = "ppo_clip"};
  engine::Component<ValueObjective> value_objective{.type = "value_clip"};
  double value_coefficient = 1;
  std::string old_logprobs = "rollout_logprobs";
  bool recompute_old_logprobs = false;
  OnPolicy on_policy = OnPolicy::kMeasured;
  bool whiten_advantages = false;
  Variance whiten_variance = Variance::kBessel;
  engine::ScheduledNumber temperature = 1.0;
  bool replay_routes = false;

  bool has_critic() const { return !critic.empty(); }
  bool is_one_model() const { return critic == actor; }
  bool trains_a_critic() const { return has_critic() && !is_one_model(); }  // beside the actor
  bool is_exact() const { return on_policy == OnPolicy::kExact; }
  bool takes_several_steps() const { return epochs > 1 || mini_batches > 1; }

  engine::ColumnSpec old_logprobs_column() const { return {old_logprobs, engine::DType::kFloat32, engine::Extent::kAction}; }

  // Of an objective that is made.
  ObjectiveNeeds needs() const { return objective.object->needs(); }
  int looks() const { return objective.object->looks(); }
  bool is_barrier() const { return takes_several_steps() || whiten_advantages || looks() > 0; }
  PpoCalendar calendar() const {
    return {.epochs = epochs, .mini_batches = mini_batches, .looks = looks(), .whitens = whiten_advantages};
  }
  bool reads_old_column() const { return needs().old_logprobs && !recompute_old_logprobs; }
  bool reads_old_values() const { return has_critic() && value_objective.object->reads_old_values(); }
};

class TrainPpo final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainPpoParams>& contract);

  TrainPpo(const TrainPpoParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override;
  void process(engine::MicroBatch& batch) override;
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;
  void end_iteration(const engine::Iteration& iteration) override;

 private:
  ChosenGroups groups_of(int64_t mini_batch, std::span<engine::MicroBatch> batches) const;
  void add_advantages(std::span<engine::MicroBatch> batches, const ChosenGroups& groups);
  void take_moments();
  std::vector<float> old_logprobs_of(const engine::MicroBatch& batch) const;

  // A look of the objective at the mini-batch: what this rank adds to it, and what it finds.
  void look_at_mini_batch(int look, std::span<engine::MicroBatch> batches, const ChosenGroups& groups);
  void find(int look);
  at::Tensor logprobs_now(const PpoPass& pass) const;

  void train_on(std::span<engine::MicroBatch> batches, const ChosenGroups& groups);

  // What the samples `chosen` of a micro-batch are computed in.
  std::vector<std::vector<size_t>> passes(const engine::MicroBatch& batch, std::span<const size_t> chosen) const;
  SampleColumns columns_of(const engine::MicroBatch& batch) const;
  PpoPass pass_of(const engine::MicroBatch& batch, std::vector<size_t> chosen, std::span<const float> recomputed) const;

  // Adds the gradients of the samples `chosen` of a micro-batch, pass by pass. `is_last`: no other is added to in this step.
  void accumulate(const engine::MicroBatch& batch, std::span<const size_t> chosen, std::span<const float> recomputed,
                  bool is_last);
  double temperature() const { return params_.temperature.at(step_.iteration); }

  // The optimizer step for what was accumulated since the last one.
  void make_step();

  const TrainPpoParams params_;
  const int64_t pass_tokens_;
  const uint64_t seed_;
  const PpoCalendar calendar_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  ActorCritic models_;
  PpoGradients gradients_;

  PpoStep step_;
  std::vector<std::vector<float>> recomputed_;  // old log-probabilities of each micro-batch of a barrier
  std::vector<at::Tensor> looked_at_;           // log-probabilities of each pass of the mini-batch that is looked at
};

}  // namespace sluice::nodes
