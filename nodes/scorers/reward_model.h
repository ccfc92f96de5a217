#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/model_text.h"
#include "nodes/models/passes/forward_model.h"

namespace sluice::nodes {

/// What a reward model scores.
enum class RewardLevel {
  kSample,  // the whole sample, at its last token: an outcome reward
  kStep,    // each step of it, at the action that ends the step: process rewards
};

constexpr auto enum_names(RewardLevel) {
  return std::array{std::pair{RewardLevel::kSample, "sample"}, std::pair{RewardLevel::kStep, "step"}};
}

/// Scores samples by a reward model.
///
///   [nodes.score]
///   type = "reward_model"
///   inputs = ["generate"]
///   model = "reward"         # head = "value", no optimizer; such as the checkpoint that train_reward writes
///   level = "sample"         # "step": a reward for each step
///   separator = "\n"         # with level = "step": what ends a step
///   writes = "score"         # the column's name; by default score, or step_rewards
///
/// Reads tokens[T]. With level = "sample" it writes score[S]: what the value head makes of the last token of the sample, the end
/// of sequence where it has one. That is the logit of transformers' AutoModelForSequenceClassification, unless the padding token
/// is what ends the sample. With level = "step" it writes step_rewards[A]: at each action that ends a step (step_ends.h) what the
/// value head makes of that token, NaN elsewhere; actions that other text parts are steps apart. No gradient. Computed in
/// passes of [budget] pass_tokens, which change no bit of it on the CPU.
struct RewardModelParams {
  std::string model;
  RewardLevel level = RewardLevel::kSample;
  std::string separator = "\n";
  std::string writes;

  engine::ColumnSpec column() const;
};

class RewardModel final : public engine::Node {
 public:
  static void describe(engine::Contract<RewardModelParams>& contract);

  RewardModel(const RewardModelParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  void score_samples(const engine::MicroBatch& batch, std::span<float> scores);
  void score_steps(const engine::MicroBatch& batch, std::span<float> rewards);

  // Of each sample the actions that end a step.
  std::vector<std::vector<size_t>> steps_of(const engine::MicroBatch& batch) const;
  void score_pass(const engine::MicroBatch& batch, std::span<const size_t> pass, const std::vector<std::vector<size_t>>& steps,
                  std::span<float> rewards);

  const RewardModelParams params_;
  const std::shared_ptr<const ForwardModel> model_;
  const std::shared_ptr<const ModelText> text_;
  const int64_t pass_tokens_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
