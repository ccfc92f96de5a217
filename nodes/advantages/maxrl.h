#pragma once

#include "nodes/advantages/group_relative.h"

namespace sluice::nodes {

/// (reward - mean) / (mean + epsilon) over the group: towards the maximum likelihood of a right answer (Tajwar et al. 2026,
/// "Maximum Likelihood Reinforcement Learning"). With rewards of 0 and 1 the mean is the share of right samples: the rarer they
/// are, the more each counts.
///
///   [nodes.advantages]
///   type = "maxrl"
///   inputs = ["score"]
///   epsilon = 1e-6
///   lone_sample = "zero"     # "score": a sample without company keeps its reward
///
/// Reads score[S], or token_rewards[A] where some node before writes them, and mask[A] if there is one; writes advantages[A].
/// What counts and what a mask does: see group_relative.h. A group whose mean is 0 gets 0. Rewards are meant to be at least 0: a
/// group whose mean is negative is a UserError, since dividing by it would encourage its worst samples.
struct MaxRlParams {
  double epsilon = 1e-6;
  LoneSample lone_sample = LoneSample::kZero;
};

class MaxRl final : public GroupRelative {
 public:
  static void describe(engine::Contract<MaxRlParams>& contract);

  MaxRl(const MaxRlParams& params, engine::NodeResources& resources) : GroupRelative(resources), params_(params) {}

 protected:
  std::vector<double> advantages_of(const RewardedGroup& group) const override;

 private:
  MaxRlParams params_;
};

}  // namespace sluice::nodes
