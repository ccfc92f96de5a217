#pragma once

#include <string>

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/advantages/kl_estimator.h"

namespace sluice::nodes {

/// Rewards of single actions: the sample's score on its last action, minus a KL penalty on every action (Ouyang et al. 2022, eq.
/// 2).
///
///   [nodes.rewards]
///   type = "token_rewards"
///   inputs = ["score", "reference"]
///   kl_coefficient = 0.02          # 0: the score alone; no reference is read
///   kl_estimator = "k1"            # "k2", "k3", "abs"
///   logprobs = "rollout_logprobs"  # the policy's side of the KL
///
/// Reads score[S] and, with a penalty, `logprobs`[A] and reference_logprobs[A]; writes token_rewards[A]
/// (S: samples, A: actions). A sample without actions has no place for its score and gets nothing.
struct TokenRewardsParams {
  double kl_coefficient = 0;
  KlEstimator kl_estimator = KlEstimator::kK1;
  std::string logprobs = "rollout_logprobs";
};

class TokenRewards final : public engine::Node {
 public:
  static void describe(engine::Contract<TokenRewardsParams>& contract);

  TokenRewards(const TokenRewardsParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  void subtract_penalty(engine::MicroBatch& batch, std::span<float> rewards);

  TokenRewardsParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
