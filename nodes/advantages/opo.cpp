#include "nodes/advantages/opo.h"

#include <numeric>

namespace sluice::nodes {

void Opo::describe(engine::Contract<OpoParams>& c) {
  c.type("opo", "reward minus the mean of the group, in which longer samples weigh more");
  describe_lone_sample(c);
  describe_rewards(c);
  describe_group_relative(c);
}

std::vector<double> Opo::advantages_of(const RewardedGroup& group) const {
  const size_t count = group.rewards.size();
  if (count == 1) return {params_.lone_sample == LoneSample::kScore ? group.rewards[0] : 0};
  const double length = std::accumulate(group.actions.begin(), group.actions.end(), 0.0);
  if (length == 0) return std::vector<double>(count, 0);  // no action to write to
  const double weighted = std::inner_product(group.actions.begin(), group.actions.end(), group.rewards.begin(), 0.0);
  std::vector<double> advantages;
  for (const double reward : group.rewards) advantages.push_back(reward - weighted / length);
  return advantages;
}

}  // namespace sluice::nodes
