#include "nodes/advantages/group_relative.h"

#include <algorithm>
#include <cmath>

#include "nodes/statistics/moments.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

std::vector<GroupRelative::Counted> GroupRelative::counted_groups(const MicroBatch& batch) {
  const ActionMask mask(batch);
  const std::vector<double> rewards = sample_rewards(batch, mask);  // [S]
  const std::vector<Range> actions = batch.actions_by_sample();
  const std::vector<Range> samples = batch.layout().samples_by_group();
  std::vector<Counted> groups;
  for (size_t g = 0; g < samples.size(); ++g) {
    Counted counted{.group = {.index = batch.group_index(g), .samples = samples[g].size(), .rewards = {}, .actions = {}},
                    .samples = {}};
    for (size_t s = samples[g].begin; s < samples[g].end; ++s) {
      if (!mask.counts(actions[s])) continue;
      counted.samples.push_back(s);
      counted.group.rewards.push_back(rewards[s]);
      counted.group.actions.push_back(static_cast<double>(mask.kept(actions[s])));
    }
    if (!counted.samples.empty()) groups.push_back(std::move(counted));
  }
  return groups;
}

void GroupRelative::process(MicroBatch& batch) {
  const ActionMask mask(batch);
  const std::vector<Range> actions = batch.actions_by_sample();
  auto advantages = batch.write(columns::kAdvantages);  // [A], zero
  for (const Counted& counted : counted_groups(batch)) {
    const std::vector<double> values = advantages_of(counted.group);
    for (size_t i = 0; i < values.size(); ++i) {
      const Range of_sample = actions[counted.samples[i]];
      std::fill(advantages.begin() + static_cast<std::ptrdiff_t>(of_sample.begin),
                advantages.begin() + static_cast<std::ptrdiff_t>(of_sample.end), static_cast<float>(values[i]));
    }
    record(counted.group, std::ranges::all_of(values, [](double value) { return value == 0; }));
  }
  zero_masked(advantages, mask);
}

void GroupRelative::record(const RewardedGroup& group, bool all_zero) {
  if (group.rewards.size() > 1)
    metrics_.mean("advantage/group_std_mean", std::sqrt(moments_of(group.rewards, Variance::kBessel).variance));
  metrics_.mean("advantage/zero_advantages", all_zero);
}

}  // namespace sluice::nodes
