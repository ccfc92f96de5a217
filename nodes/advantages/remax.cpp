#include "nodes/advantages/remax.h"

#include <string>

#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

void ReMax::describe(engine::Contract<ReMaxParams>& c) {
  c.type("remax", "reward minus the score of the likeliest response to the same prompt");
  describe_rewards(c);
  c.reads(columns::kBaselineScore);
  c.writes(columns::kAdvantages);
  c.metric("advantage/mean", engine::Metric::kMean, "mean over the samples of the reward less the baseline's");
}

void ReMax::process(MicroBatch& batch) {
  const ActionMask mask(batch);
  const std::vector<double> rewards = action_rewards(batch, mask);  // [A]
  const auto baselines = batch.read(columns::kBaselineScore);       // [G]
  auto advantages = batch.write(columns::kAdvantages);              // [A], zero
  const std::vector<Range> actions = batch.actions_by_sample();
  size_t group = 0;
  for (const Range samples : batch.layout().samples_by_group()) {
    const auto name_of_group = [&] { return "group " + std::to_string(batch.group_index(group)); };
    require_finite_entry(baselines[group], columns::kBaselineScore.name, name_of_group);
    for (size_t s = samples.begin; s < samples.end; ++s) {
      double to_go = 0;
      for (size_t t = actions[s].end; t-- > actions[s].begin;) {
        if (!mask.keeps(t)) continue;
        to_go += rewards[t];
        advantages[t] = static_cast<float>(to_go - baselines[group]);
      }
      if (mask.last_kept(actions[s])) metrics_.mean("advantage/mean", to_go - baselines[group]);
    }
    ++group;
  }
}

}  // namespace sluice::nodes
