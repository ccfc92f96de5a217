#include "nodes/advantages/reinforce_pp.h"

#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::NodeNeeds;
using engine::Range;

namespace {

// Takes the mean score of the group off each sample's last action that counts. rewards[A].
void subtract_group_means(const MicroBatch& batch, const ActionMask& mask, std::vector<double>& rewards) {
  const auto scores = scores_that_count(batch);  // [S]
  const std::vector<Range> actions = batch.actions_by_sample();
  for (const Range samples : batch.layout().samples_by_group()) {
    std::vector<double> counting;
    for (size_t s = samples.begin; s < samples.end; ++s) {
      if (mask.counts(actions[s])) counting.push_back(scores[s]);
    }
    const double mean = moments_of(counting, Variance::kBiased).mean;
    for (size_t s = samples.begin; s < samples.end; ++s) {
      if (const auto last = mask.last_kept(actions[s])) rewards[*last] -= mean;
    }
  }
}

}  // namespace

void ReinforcePp::describe(engine::Contract<ReinforcePpParams>& c) {
  using P = ReinforcePpParams;
  c.type("reinforce_pp", "sum of the rewards to come, whitened over the iteration");
  c.param("discount", &P::discount).between(0, 1).doc("weight of a reward one action later");
  c.param("baseline", &P::baseline).doc("what is taken off the score: nothing, or the mean of its group");
  describe_whitening(c);
  c.needs([](const P& params, NodeNeeds& needs) {
    if (params.baseline == ReinforceBaseline::kGroupMean) {
      needs.reads.push_back(columns::kScore.spec());
      needs.choices.push_back({{columns::kTokenRewards.spec()}, false});
    } else {
      needs.choices.push_back({{columns::kTokenRewards.spec(), columns::kScore.spec()}, true});
    }
  });
  c.reads_if_written(columns::kMask);
  c.writes(columns::kAdvantages);
  c.writes_by_product(columns::kReturns);  // for a critic, or to look at
  c.metric("advantage/return_mean", engine::Metric::kMean, "mean over the actions of the return before whitening");
}

void ReinforcePp::process(MicroBatch& batch) {
  const ActionMask mask(batch);
  std::vector<double> rewards = action_rewards(batch, mask);  // [A]
  if (params_.baseline == ReinforceBaseline::kGroupMean) subtract_group_means(batch, mask, rewards);
  auto advantages = batch.write(columns::kAdvantages);  // [A]
  auto returns = batch.write(columns::kReturns);        // [A]

  double return_sum = 0;
  for (const Range actions : batch.actions_by_sample()) {
    double to_go = 0;
    for (size_t t = actions.end; t-- > actions.begin;) {
      to_go = rewards[t] + params_.discount * to_go;
      advantages[t] = returns[t] = static_cast<float>(to_go);
      if (mask.keeps(t))
        return_sum += mask.weight(t) * to_go;
      else
        to_go = 0;
    }
  }
  zero_masked(advantages, mask);
  const double count = mask.total(batch.actions());
  metrics_.mean("advantage/return_mean", return_sum / count, count);
}

void ReinforcePp::gather(int64_t, std::span<MicroBatch> batches) {
  for (MicroBatch& batch : batches) {
    process(batch);
    add_moments({batch.written(columns::kAdvantages)}, {ActionMask(batch).weights()}, totals_.mine(kWhitenedTotal));
  }
}

void ReinforcePp::process_iteration(int64_t, std::span<MicroBatch> batches) {
  for (MicroBatch& batch : batches) {
    const std::span<float> advantages = batch.written(columns::kAdvantages);
    whiten({advantages}, totals_.of_all(kWhitenedTotal), params_);
    zero_masked(advantages, ActionMask(batch));
  }
}

}  // namespace sluice::nodes
