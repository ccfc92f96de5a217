#include "nodes/advantages/gae.h"

#include "nodes/columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

void Gae::describe(engine::Contract<GaeParams>& c) {
  c.type("gae", "generalised advantage estimation");
  c.param("discount", &GaeParams::discount).between(0, 1).doc("weight of a reward one action later");
  c.param("lambda", &GaeParams::lambda).between(0, 1).doc("0 trusts the critic, 1 trusts the sampled return");
  c.param("whiten", &GaeParams::whiten).doc("zero mean, unit variance over the iteration's actions");
  c.reads(columns::kTokenRewards, columns::kValues);
  c.writes(columns::kAdvantages, columns::kReturns);
  c.iteration_scope_if([](const GaeParams& p) { return p.whiten == Whitening::kIteration; }, "whiten = \"iteration\"");
  c.metric("return_mean", "mean over the actions of the return that the critic learns");
  c.metric("value_mean", "mean over the actions of the critic's value");
}

void Gae::process(MicroBatch& batch) {
  const auto rewards = batch.read(columns::kTokenRewards);  // [A]
  const auto values = batch.read(columns::kValues);         // [A]
  auto advantages = batch.write(columns::kAdvantages);      // [A]
  auto returns = batch.write(columns::kReturns);            // [A]

  double return_sum = 0, value_sum = 0;
  for (const Range actions : batch.actions_by_sample()) {
    double advantage = 0, next_value = 0;  // nothing follows the last action
    for (size_t t = actions.end; t-- > actions.begin;) {
      const double error = rewards[t] + params_.discount * next_value - values[t];
      advantage = error + params_.discount * params_.lambda * advantage;
      advantages[t] = static_cast<float>(advantage);
      returns[t] = static_cast<float>(advantage + values[t]);
      next_value = values[t];
      return_sum += returns[t];
      value_sum += values[t];
    }
  }
  const auto count = static_cast<double>(batch.actions());
  metrics_.mean("return_mean", return_sum / count, count);
  metrics_.mean("value_mean", value_sum / count, count);
}

void Gae::process_iteration(std::span<MicroBatch> batches) {
  std::vector<std::span<float>> advantages;
  for (MicroBatch& batch : batches) {
    process(batch);
    advantages.push_back(batch.written(columns::kAdvantages));
  }
  whiten(advantages, reducer_);
}

}  // namespace sluice::nodes
