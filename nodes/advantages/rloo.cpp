#include "nodes/advantages/rloo.h"

#include "nodes/statistics/moments.h"

namespace sluice::nodes {

void Rloo::describe(engine::Contract<RlooParams>& c) {
  c.type("rloo", "reward minus the mean of the other samples of the group");
  describe_lone_sample(c);
  describe_rewards(c);
  describe_group_relative(c);
}

// The mean of the others is (n m - r) / (n - 1), so r less that is (r - m) n / (n - 1): exactly 0 where all rewards are equal.
std::vector<double> Rloo::advantages_of(const RewardedGroup& group) const {
  const auto count = static_cast<double>(group.rewards.size());
  if (count == 1) return {params_.lone_sample == LoneSample::kScore ? group.rewards[0] : 0};
  const double mean = moments_of(group.rewards, Variance::kBiased).mean;
  std::vector<double> advantages;
  for (const double reward : group.rewards) advantages.push_back((reward - mean) * count / (count - 1));
  return advantages;
}

}  // namespace sluice::nodes
