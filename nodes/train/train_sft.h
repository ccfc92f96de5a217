#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/train/iteration_step.h"

namespace sluice::nodes {

/// What the loss of an iteration is a mean over.
enum class SftLoss {
  kTokenMean,   // all actions: long answers count more
  kSampleMean,  // the samples, each the mean over its actions
};

constexpr auto enum_names(SftLoss) {
  return std::array{std::pair{SftLoss::kTokenMean, "token_mean"}, std::pair{SftLoss::kSampleMean, "sample_mean"}};
}

/// Supervised fine-tuning: one optimizer step an iteration on the mean cross entropy of its actions (the tokens of the answers).
///
///   [nodes.train]
///   type = "train_sft"
///   inputs = ["examples"]
///   model = "actor"        # with an optimizer
///   loss = "token_mean"    # "sample_mean": every sample counts the same, however long it is
///
/// Reads tokens[T], and mask[A] if some node writes it: the weight of each action, in the sums and in what they are divided by.
/// Samples none of whose actions has a weight are not computed at all, so that best-of-n and rejection sampling cost what they
/// train on. Packing needs no setting: samples lie back to back in micro-batches of micro_batch_tokens, each attends to itself
/// only, and nothing is padded. What is computed at once is a pass of [budget] pass_tokens. Gradients accumulate as sums and are
/// divided by the count of the whole iteration, of actions or samples, so the step does not depend on the micro-batches. An
/// iteration without actions makes no step.
struct TrainSftParams {
  std::string model;
  SftLoss loss = SftLoss::kTokenMean;
};

class TrainSft final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainSftParams>& contract);

  TrainSft(const TrainSftParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override { step_.begin(iteration); }
  void process(engine::MicroBatch& batch) override;
  void end_iteration(const engine::Iteration& iteration) override;

 private:
  const TrainSftParams params_;
  IterationStep step_;
};

}  // namespace sluice::nodes
