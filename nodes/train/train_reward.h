#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/train/iteration_step.h"
#include "nodes/train/rankings.h"

namespace sluice::nodes {

/// Trains a reward model on groups of samples of which some are better than others: one optimizer step an iteration.
///
///   [nodes.train]
///   type = "train_reward"
///   inputs = ["pairs"]
///   model = "reward"                # head = "value", with an optimizer
///   compare = "best_and_worst"      # one pair of each group; "all_pairs", "plackett_luce": all samples of different scores
///   centre_coefficient = 0.01       # 0: rewards may lie anywhere; not with "plackett_luce"
///
/// The reward r of a sample is what the value head makes of its last token, the end of sequence where it has one; that is the
/// logit of transformers' AutoModelForSequenceClassification on the checkpoint, unless its padding token is what ends the sample.
/// The loss of a pair is that of Bradley and Terry, -log sigmoid(r(chosen) - r(rejected) - margin) (Ouyang et al. 2022, eq. 1;
/// the margin: Touvron et al. 2023, "Llama 2", eq. 2), plus centre_coefficient (r(chosen) + r(rejected))^2, which keeps rewards
/// around 0 (Eisenstein et al. 2023).
///
/// "best_and_worst" are the pairs of train_dpo: of each group the sample with the best score and the one with the worst.
/// "all_pairs" are all of its K (K - 1) / 2 pairs, and the loss of a group is the mean over them (Ouyang et al. 2022, eq. 1,
/// where K is 4 to 9); pairs of equal scores are none. "plackett_luce": -log of the probability of the whole order, see
/// rankings.h.
///
/// Reads tokens[T], score[S], and margin[G] if some node writes it, but with "plackett_luce". Gradients accumulate as sums and
/// are divided by the number of groups of the whole iteration that have two different scores. An iteration without any makes no
/// step. The samples of a group that are compared are kept in one pass, as pairs are in train_dpo.
struct TrainRewardParams {
  std::string model;
  Comparison compare = Comparison::kBestAndWorst;
  double centre_coefficient = 0;
};

class TrainReward final : public engine::Node {
 public:
  static void describe(engine::Contract<TrainRewardParams>& contract);

  TrainReward(const TrainRewardParams& params, engine::NodeResources& resources);

  void begin_iteration(const engine::Iteration& iteration) override { step_.begin(iteration); }
  void process(engine::MicroBatch& batch) override;
  void end_iteration(const engine::Iteration& iteration) override;

 private:
  // Of the samples `chosen`, a pass, each of which the loss counts so much: [N].
  at::Tensor rewards_of(const engine::MicroBatch& batch, std::span<const size_t> chosen, std::span<const double> counted,
                        bool is_last);

  // The sum over rankings, whose samples have these rewards [N].
  at::Tensor loss_of(const engine::MicroBatch& batch, const RankedSamples& ranked, const at::Tensor& rewards);
  void record(const at::Tensor& chosen, const at::Tensor& rejected);

  const TrainRewardParams params_;
  engine::MetricsRecorder& metrics_;
  IterationStep step_;
};

}  // namespace sluice::nodes
