#pragma once

#include "nodes/advantages/group_relative.h"

namespace sluice::nodes {

/// Reward minus the mean of the group weighted by length: the baseline of least variance, if the gradient of a sample grows with
/// its length (Hao et al. 2025, "On-Policy RL with Optimal Reward Baseline").
///
///   baseline = sum_i l_i r_i / sum_i l_i,   l_i = actions of sample i
///
///   [nodes.advantages]
///   type = "opo"
///   inputs = ["score"]
///   lone_sample = "zero"     # "score": a sample without company keeps its reward
///
/// Reads score[S], or token_rewards[A] where some node before writes them, and mask[A] if there is one, which also shortens l_i;
/// writes advantages[A]. What counts and what a mask does: see group_relative.h.
struct OpoParams {
  LoneSample lone_sample = LoneSample::kZero;
};

class Opo final : public GroupRelative {
 public:
  static void describe(engine::Contract<OpoParams>& contract);

  Opo(const OpoParams& params, engine::NodeResources& resources) : GroupRelative(resources), params_(params) {}

 protected:
  std::vector<double> advantages_of(const RewardedGroup& group) const override;

 private:
  OpoParams params_;
};

}  // namespace sluice::nodes
