#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/language_model.h"
#include "nodes/objectives/objective.h"
#include "nodes/ragged.h"

namespace sluice::nodes {

/// Trains a policy, and a critic if there is one, on the advantages of an iteration (PPO, GRPO and their relatives).
///
///   [nodes.train]
///   type = "train_ppo"
///   inputs = ["advantages"]
///   actor = "actor"
///   critic = "critic"                      # optional; head = "value"
///   epochs = 1                             # passes over the iteration
///   mini_batches = 1                       # optimizer steps of a pass; groups are dealt out to them at random
///   objective = "ppo_clip"                 # or a table with its parameters
///   value_objective = "value_clip"
///   old_logprobs = "rollout_logprobs"      # the column with the log-probabilities of the weights that sampled
///   temperature = 1.0                      # as in generate
///
/// Reads tokens[T], advantages[A], and as the objectives need them old log-probabilities[A], returns[A], values[A].
/// Gradients accumulate as sums and are divided by the number of actions of the step over all processes: how groups are packed
/// into micro-batches changes nothing but rounding. With one epoch and one mini-batch the gradients are taken as micro-batches
/// arrive, and the step is made at the end of the iteration; otherwise the node is a barrier. A mini-batch without actions makes
/// no step. A loss or a gradient that is not finite is a UserError, before a weight has changed in that step.
struct TrainPpoParams {
  std::string actor;
  std::string critic;
  int64_t epochs = 1;
  int64_t mini_batches = 1;
  engine::Component<Objective> objective{.type = "ppo_clip"};
  engine::Component<ValueObjective> value_objective{.type = "value_clip"};
  std::string old_logprobs = "rollout_logprobs";
  double temperature = 1.0;
};

class TrainPpo final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainPpoParams>& contract);

  TrainPpo(const TrainPpoParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override;
  void process(engine::MicroBatch& batch) override;
  void process_iteration(std::span<engine::MicroBatch> batches) override;
  void end_iteration(const engine::Iteration& iteration) override;

 private:
  // How well the critic's values, before the iteration's first step, explain the returns.
  struct Explained {
    double count = 0, returns = 0, returns_squared = 0, errors = 0, errors_squared = 0;
  };

  void train_epoch(std::span<engine::MicroBatch> batches, size_t groups, int64_t epoch);

  // Adds the gradients of the samples `chosen` of a micro-batch.
  void accumulate(const engine::MicroBatch& batch, std::span<const size_t> chosen);
  void accumulate_actor(const engine::MicroBatch& batch, std::span<const size_t> chosen, const RaggedSamples& samples);
  void accumulate_critic(const engine::MicroBatch& batch, std::span<const size_t> chosen, const RaggedSamples& samples);

  // The optimizer step for what was accumulated since the last one.
  void step();

  void record_differences(const at::Tensor& logprobs, const at::Tensor& old_logprobs);
  void add_explained(const at::Tensor& values, const at::Tensor& returns);
  void record_explained();

  const TrainPpoParams params_;
  const std::shared_ptr<LanguageModel> actor_;
  const std::shared_ptr<LanguageModel> critic_;  // null: none
  const uint64_t seed_;
  engine::MetricsRecorder& metrics_;
  engine::Reducer& reducer_;

  int64_t iteration_ = 0;
  int64_t steps_ = 0;   // of this iteration
  double actions_ = 0;  // whose gradients wait for the next step, in this process
  Explained explained_;
};

}  // namespace sluice::nodes
