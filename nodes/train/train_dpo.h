#pragma once

#include <span>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/objectives/preference/preference_objective.h"
#include "nodes/train/iteration_step.h"
#include "nodes/train/sample_pairs.h"

namespace sluice::nodes {

/// Trains a policy on pairs of samples, of which one is better: one optimizer step an iteration (DPO and its relatives).
///
///   [nodes.train]
///   type = "train_dpo"
///   inputs = ["pairs", "reference"]
///   model = "actor"                       # with an optimizer
///   objective = "dpo"                     # or ipo, simpo, hinge; or a table with its parameters
///   nll_coefficient = 0.0                 # adds minus the mean log-probability of the chosen sample's actions
///   temperature = 1.0                     # as in generate, where the samples come from there
///
/// Of each group the sample with the best score is chosen and the one with the worst is rejected, of equals the first: the pairs
/// of preference_pairs, and samples that were just generated and scored (online DPO), are trained on alike. A group without two
/// different scores has no pair and teaches nothing; only the samples of pairs are computed. Passes of [budget] pass_tokens are
/// cut between pairs; where the two samples of a pair do not fit one, each is computed on its own, and twice.
///
/// Reads tokens[T], score[S], reference_logprobs[A] unless the objective needs none, and mask[A] if some node writes it: a sample
/// is the sum over its actions by their weights, and one without weight is in no pair. Gradients accumulate as sums and are
/// divided by the number of pairs of the whole iteration, so the step does not depend on the micro-batches. nll_coefficient is
/// from Pang et al. 2024, "Iterative Reasoning Preference Optimization" (who weight the other term). An iteration without pairs
/// makes no step. A score, a loss or a gradient that is not finite is a UserError, before a weight has changed.
struct TrainDpoParams {
  std::string model;
  engine::Component<PreferenceObjective> objective{.type = "dpo"};
  double nll_coefficient = 0;
  engine::ScheduledNumber temperature = 1.0;
};

class TrainDpo final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainDpoParams>& contract);

  TrainDpo(const TrainDpoParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override { step_.begin(iteration); }
  void process(engine::MicroBatch& batch) override;
  void end_iteration(const engine::Iteration& iteration) override;

 private:
  // Of the actions of `samples`, a pass: [A'].
  at::Tensor logprobs_of(const engine::MicroBatch& batch, std::span<const size_t> samples, bool is_last);

  // The sum over pairs whose actions have these log-probabilities [A'].
  at::Tensor loss_of(const engine::MicroBatch& batch, const PairedSamples& paired, std::span<const float> mask,
                     const at::Tensor& logprobs);
  at::Tensor losses(const PreferenceInputs& inputs);

  const TrainDpoParams params_;
  engine::MetricsRecorder& metrics_;
  IterationStep step_;
};

}  // namespace sluice::nodes
