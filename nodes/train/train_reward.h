#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/trained_model.h"
#include "nodes/train/router_metrics.h"
#include "nodes/train/sample_pairs.h"

namespace sluice::nodes {

/// Trains a reward model on pairs of samples, of which one is better: one optimizer step an iteration.
///
///   [nodes.train]
///   type = "train_reward"
///   inputs = ["pairs"]
///   model = "reward"                # head = "value", with an optimizer
///   centre_coefficient = 0.01       # 0: rewards may lie anywhere
///
/// The reward r of a sample is what the value head makes of its last token, the end of sequence where it has one; that is the
/// logit of transformers' AutoModelForSequenceClassification on the checkpoint, unless its padding token is what ends the sample.
/// The loss of a pair is that of Bradley and Terry, -log sigmoid(r(chosen) - r(rejected) - margin) (Ouyang et al. 2022, eq. 1;
/// the margin: Touvron et al. 2023, "Llama 2", eq. 2), plus centre_coefficient (r(chosen) + r(rejected))^2, which keeps rewards
/// around 0 (Eisenstein et al. 2023).
///
/// Pairs are those of train_dpo: of each group the sample with the best score and the one with the worst. Reads tokens[T],
/// score[S], and margin[G] if some node writes it. Gradients accumulate as sums and are divided by the number of pairs of the
/// whole iteration. An iteration without pairs makes no step. Passes are cut as in train_dpo.
struct TrainRewardParams {
  std::string model;
  double centre_coefficient = 0;
};

class TrainReward final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainRewardParams>& contract);

  TrainReward(const TrainRewardParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override;
  void process(engine::MicroBatch& batch) override;
  void end_iteration(const engine::Iteration&) override;

 private:
  // Of the samples `chosen`: [S'].
  at::Tensor rewards_of(const engine::MicroBatch& batch, std::span<const size_t> chosen);

  // The sum over pairs of P, whose samples, as PairedSamples has them, have these rewards [2P].
  at::Tensor loss_of(const engine::MicroBatch& batch, const std::vector<SamplePair>& pairs, const at::Tensor& rewards);
  void record(const at::Tensor& chosen, const at::Tensor& rejected);

  const TrainRewardParams params_;
  const std::shared_ptr<TrainedModel> model_;
  const int64_t pass_tokens_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  RouterMetrics router_metrics_;
};

}  // namespace sluice::nodes
