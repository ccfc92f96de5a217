#include "nodes/advantages/rewards.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

std::vector<double> sample_rewards(const MicroBatch& batch, const ActionMask& mask) {
  if (!batch.has(columns::kTokenRewards.spec())) {
    const auto scores = batch.read(columns::kScore);  // [S]
    return {scores.begin(), scores.end()};
  }
  const auto token_rewards = batch.read(columns::kTokenRewards);  // [A]
  std::vector<double> rewards;
  for (const Range actions : batch.actions_by_sample()) {
    double& sum = rewards.emplace_back(0);
    for (size_t a = actions.begin; a < actions.end; ++a) {
      if (mask.keeps(a)) sum += token_rewards[a];
    }
  }
  return rewards;
}

std::vector<double> action_rewards(const MicroBatch& batch, const ActionMask& mask) {
  if (batch.has(columns::kTokenRewards.spec())) {
    const auto token_rewards = batch.read(columns::kTokenRewards);  // [A]
    return {token_rewards.begin(), token_rewards.end()};
  }
  const auto scores = batch.read(columns::kScore);  // [S]
  std::vector<double> rewards(batch.actions(), 0);
  size_t sample = 0;
  for (const Range actions : batch.actions_by_sample()) {
    if (const auto last = mask.last_kept(actions)) rewards[*last] = scores[sample];
    ++sample;
  }
  return rewards;
}

}  // namespace sluice::nodes
