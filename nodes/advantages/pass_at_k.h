#pragma once

#include "nodes/advantages/group_relative.h"

namespace sluice::nodes {

/// The advantage of a sample when k of its group are scored together by their best: pass@k, in closed form over all subsets of k
/// samples (Chen et al. 2025, "Pass@k Training"). Of N samples with scores of 0 and 1, F of them 0:
///
///   R = 1 - C(F, k) / C(N, k)         share of the subsets in which some sample is right
///   S = sqrt(R (1 - R))               their standard deviation
///   right: (1 - R) / (S + epsilon)    wrong: (1 - R - C(F - 1, k - 1) / C(N - 1, k - 1)) / (S + epsilon)
///
///   [nodes.advantages]
///   type = "pass_at_k"
///   inputs = ["score"]
///   k = 4                    # 1: grpo with std = "biased"
///   epsilon = 1e-6
///
/// Reads score[S], and mask[A] if there is one; writes advantages[A]. What counts and what a mask does: see group_relative.h.
/// Fewer than k wrong samples: no subset fails and all get 0, as in a group without a right one. UserError, with the group, for a
/// score other than 0 and 1 and for a group of fewer than k samples; where only the mask leaves fewer, they get 0.
struct PassAtKParams {
  int64_t k = 4;
  double epsilon = 1e-6;
};

class PassAtK final : public GroupRelative {
 public:
  static void describe(engine::Contract<PassAtKParams>& contract);

  PassAtK(const PassAtKParams& params, engine::NodeResources& resources) : GroupRelative(resources), params_(params) {}

 protected:
  std::vector<double> advantages_of(const RewardedGroup& group) const override;

 private:
  PassAtKParams params_;
};

}  // namespace sluice::nodes
