#pragma once

#include <memory>
#include <string>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/language_model.h"

namespace sluice::nodes {

/// Supervised fine-tuning: one optimizer step an iteration on the mean cross entropy of its actions (the tokens of the answers).
///
///   [nodes.train]
///   type = "train_sft"
///   inputs = ["examples"]
///   model = "actor"        # with an optimizer
///
/// Reads tokens[T]. Gradients accumulate as sums and are divided by the number of actions of the whole iteration, so the step
/// does not depend on the micro-batches. An iteration without actions makes no step.
struct TrainSftParams {
  std::string model;
};

class TrainSft final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainSftParams>& contract);

  TrainSft(const TrainSftParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration&) override { actions_ = 0; }
  void process(engine::MicroBatch& batch) override;
  void end_iteration(const engine::Iteration&) override;

 private:
  const std::shared_ptr<LanguageModel> model_;
  engine::MetricsRecorder& metrics_;
  engine::Reducer& reducer_;
  double actions_ = 0;  // of this iteration, so far, in this process
};

}  // namespace sluice::nodes
