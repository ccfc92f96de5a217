#include "nodes/advantages/opo.h"

#include <numeric>

#include "nodes/statistics/moments.h"

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
  std::vector<double> advantages = group.rewards;
  const double mean = moments_of(group.rewards, Variance::kBiased).mean;
  for (double& reward : advantages) reward -= mean;  // equal rewards are exactly 0 from here on
  const double weighted = std::inner_product(group.actions.begin(), group.actions.end(), advantages.begin(), 0.0);
  for (double& reward : advantages) reward -= weighted / length;
  return advantages;
}

}  // namespace sluice::nodes
