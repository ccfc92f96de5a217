#include "nodes/advantages/maxrl.h"

#include "base/error.h"
#include "nodes/statistics/moments.h"

namespace sluice::nodes {

void MaxRl::describe(engine::Contract<MaxRlParams>& c) {
  c.type("maxrl", "reward relative to the mean of the group, divided by that mean");
  c.param("epsilon", &MaxRlParams::epsilon).at_least(0).doc("added to the mean that divides");
  describe_lone_sample(c);
  describe_rewards(c);
  describe_group_relative(c);
}

std::vector<double> MaxRl::advantages_of(const RewardedGroup& group) const {
  if (group.rewards.size() == 1) return {params_.lone_sample == LoneSample::kScore ? group.rewards[0] : 0};
  const double mean = moments_of(group.rewards, Variance::kBiased).mean;
  if (mean < 0) {
    throw UserError(
        "the mean reward of group " + std::to_string(group.index) + " is negative: maxrl would encourage its worst samples",
        "rewards of at least 0, without a KL penalty in them, or type \"rloo\"");
  }
  std::vector<double> advantages;
  for (const double reward : group.rewards) advantages.push_back(mean == 0 ? 0 : (reward - mean) / (mean + params_.epsilon));
  return advantages;
}

}  // namespace sluice::nodes
