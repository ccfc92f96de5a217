#include "nodes/advantages/rewards.h"

#include <cmath>
#include <string>

#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

namespace {

void require_finite_where_kept(const MicroBatch& batch, const ActionMask& mask, std::span<const float> entries,
                               const std::string& name, bool nan_is_none) {
  const std::vector<Range> actions = batch.actions_by_sample();
  for (size_t s = 0; s < actions.size(); ++s) {
    for (size_t a = actions[s].begin; a < actions[s].end; ++a) {
      if (!mask.keeps(a) || (nan_is_none && std::isnan(entries[a]))) continue;
      require_finite_entry(entries[a], name,
                           [&] { return "action " + std::to_string(a - actions[s].begin) + " of " + name_of_sample(batch, s); });
    }
  }
}

}  // namespace

std::span<const float> kept_entries(const MicroBatch& batch, const ActionMask& mask, const engine::Column<float>& column) {
  const std::span<const float> entries = batch.read(column);
  require_finite_where_kept(batch, mask, entries, column.name, /*nan_is_none=*/false);
  return entries;
}

std::span<const float> kept_step_rewards(const MicroBatch& batch, const ActionMask& mask) {
  const std::span<const float> entries = batch.read(columns::kStepRewards);
  require_finite_where_kept(batch, mask, entries, columns::kStepRewards.name, /*nan_is_none=*/true);
  return entries;
}

std::vector<double> sample_rewards(const MicroBatch& batch, const ActionMask& mask) {
  if (!batch.has(columns::kTokenRewards.spec())) {
    const auto scores = scores_that_count(batch);  // [S]
    return {scores.begin(), scores.end()};
  }
  const auto token_rewards = kept_entries(batch, mask, columns::kTokenRewards);  // [A]
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
    const auto token_rewards = kept_entries(batch, mask, columns::kTokenRewards);  // [A]
    return {token_rewards.begin(), token_rewards.end()};
  }
  const auto scores = scores_that_count(batch);  // [S]
  std::vector<double> rewards(batch.actions(), 0);
  size_t sample = 0;
  for (const Range actions : batch.actions_by_sample()) {
    if (const auto last = mask.last_kept(actions)) rewards[*last] = scores[sample];
    ++sample;
  }
  return rewards;
}

}  // namespace sluice::nodes
