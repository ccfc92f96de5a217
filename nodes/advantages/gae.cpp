#include "nodes/advantages/gae.h"

#include <cmath>

#include "nodes/advantages/rewards.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

void Gae::describe(engine::Contract<GaeParams>& c) {
  c.type("gae", "generalised advantage estimation");
  c.param("discount", &GaeParams::discount).between(0, 1).doc("weight of a reward one action later");
  c.param("lambda", &GaeParams::lambda).between(0, 1).doc("0 trusts the critic, 1 trusts the sampled return");
  c.param("masked_actions", &GaeParams::masked_actions)
      .doc("where the mask is 0 the recursion runs on (included) or passes over (skipped)");
  describe_whitening(c);
  c.reads(columns::kTokenRewards, columns::kValues);
  c.reads_if_written(columns::kMask);
  c.writes(columns::kAdvantages, columns::kReturns);
  c.metric("advantage/return_mean", engine::Metric::kMean, "mean over the actions of the return that the critic learns");
  c.metric("value/mean", engine::Metric::kMean, "mean over the actions of the critic's value");
}

void Gae::process(MicroBatch& batch) {
  const ActionMask mask(batch);
  const auto rewards = kept_entries(batch, mask, columns::kTokenRewards);  // [A]
  const auto values = kept_entries(batch, mask, columns::kValues);         // [A]
  auto advantages = batch.write(columns::kAdvantages);                     // [A]
  auto returns = batch.write(columns::kReturns);                           // [A]
  const auto skipped = [&](size_t t) {
    return !mask.keeps(t) &&
           (params_.masked_actions == MaskedActions::kSkipped || !std::isfinite(rewards[t]) || !std::isfinite(values[t]));
  };

  double return_sum = 0, value_sum = 0;
  for (const Range actions : batch.actions_by_sample()) {
    double advantage = 0, next_value = 0;  // nothing follows the last action
    for (size_t t = actions.end; t-- > actions.begin;) {
      if (skipped(t)) continue;
      const double error = rewards[t] + params_.discount * next_value - values[t];
      advantage = error + params_.discount * params_.lambda * advantage;
      advantages[t] = static_cast<float>(advantage);
      returns[t] = static_cast<float>(advantage + values[t]);
      next_value = values[t];
      return_sum += mask.weight(t) * returns[t];
      value_sum += mask.weight(t) * values[t];
    }
  }
  const double count = mask.total(batch.actions());
  metrics_.mean("advantage/return_mean", return_sum / count, count);
  metrics_.mean("value/mean", value_sum / count, count);
}

void Gae::gather(int64_t, std::span<MicroBatch> batches) {
  for (MicroBatch& batch : batches) {
    process(batch);
    add_moments({batch.written(columns::kAdvantages)}, {ActionMask(batch).weights()}, totals_.mine(kWhitenedTotal));
  }
}

void Gae::process_iteration(int64_t, std::span<MicroBatch> batches) {
  for (MicroBatch& batch : batches) {
    const std::span<float> advantages = batch.written(columns::kAdvantages);
    whiten({advantages}, totals_.of_all(kWhitenedTotal), params_);
    if (params_.masked_actions != MaskedActions::kIncluded) zero_masked(advantages, ActionMask(batch));
  }
}

}  // namespace sluice::nodes
