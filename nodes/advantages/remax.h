#pragma once

#include "engine/contract/node.h"
#include "nodes/advantages/rewards.h"

namespace sluice::nodes {

/// The sum of the rewards from an action on, minus the score of the likeliest response to the prompt (Li et al. 2024, "ReMax").
///
///   [nodes.advantages]
///   type = "remax"
///   inputs = ["score", "baseline_score"]
///
/// Reads token_rewards[A], or score[S] where no node before writes them, which is then the sum on every action;
/// baseline_score[G], which a scorer with scores = "baseline" writes; and mask[A] if there is one. Writes advantages[A]. Rewards
/// of actions whose mask is 0 are left out, and their advantage is 0.
struct ReMaxParams {};

class ReMax final : public engine::Node {
 public:
  static void describe(engine::Contract<ReMaxParams>& contract);

  ReMax(const ReMaxParams&, engine::NodeResources& resources) : metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
