#pragma once

#include "nodes/advantages/group_relative.h"

namespace sluice::nodes {

/// Reward minus the mean reward of the other samples of the group: REINFORCE leave-one-out (Kool et al. 2019; Ahmadian et al.
/// 2024, "Back to Basics").
///
///   [nodes.advantages]
///   type = "rloo"
///   inputs = ["score"]
///   lone_sample = "zero"     # "score": a sample without company keeps its reward
///
/// Reads score[S], or token_rewards[A] where some node before writes them (the KL penalty is then part of the reward, as in the
/// paper), and mask[A] if there is one; writes advantages[A]. What counts and what a mask does: see group_relative.h.
struct RlooParams {
  LoneSample lone_sample = LoneSample::kZero;
};

class Rloo final : public GroupRelative {
 public:
  static void describe(engine::Contract<RlooParams>& contract);

  Rloo(const RlooParams& params, engine::NodeResources& resources) : GroupRelative(resources), params_(params) {}

 protected:
  std::vector<double> advantages_of(const RewardedGroup& group) const override;

 private:
  RlooParams params_;
};

}  // namespace sluice::nodes
