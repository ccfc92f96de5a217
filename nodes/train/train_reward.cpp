#include "nodes/train/train_reward.h"

#include <ATen/ops/log_sigmoid.h>

#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/models/model_parts.h"
#include "nodes/columns/score_columns.h"
#include "nodes/sources/preference_pairs.h"
#include "nodes/train/gradient_in_parts.h"
#include "nodes/train/optimizer_step.h"
#include "nodes/train/pair_metrics.h"

namespace sluice::nodes {
namespace {

at::Tensor margins_of(const engine::MicroBatch& batch, const std::vector<SamplePair>& pairs) {
  const auto margins = batch.read(kMargin);  // [G]
  std::vector<float> of_pairs;
  for (const SamplePair& pair : pairs) of_pairs.push_back(margins[pair.group]);
  return action_tensor(of_pairs).clone();
}

}  // namespace

void TrainReward::describe(engine::Contract<TrainRewardParams>& c) {
  using P = TrainRewardParams;
  c.type("train_reward", "one optimizer step an iteration of a reward model, on pairs of a better and a worse sample");
  c.model("model", &P::model, engine::ModelUse::kUpdates, "value").required().doc("the reward model");
  c.param("centre_coefficient", &P::centre_coefficient)
      .at_least(0)
      .doc("weight of the squared sum of a pair's two rewards, which keeps them around 0; usual is 0.01");
  c.reads(columns::kTokens, columns::kScore);
  c.reads_if_written(kMargin);
  describe_pair_metrics(c, "reward_model", "share of the pairs whose chosen sample has the higher reward");
  describe_learning_rate(c, "reward_model");
  RouterMetrics::describe(c, "model");
}

TrainReward::TrainReward(const TrainRewardParams& params, engine::NodeResources& resources)
    : params_(params),
      model_(trained_model(resources, params.model)),
      pass_tokens_(resources.pass_tokens),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      router_metrics_(*model_, RouterMetrics::kGroup, resources) {}

void TrainReward::begin_iteration(const engine::Iteration& iteration) {
  begin_training(*model_, iteration, metrics_, "reward_model");
}

void TrainReward::process(engine::MicroBatch& batch) {
  const std::vector<SamplePair> pairs = pairs_by_score(batch.layout(), finite_scores(batch, columns::kScore.name));
  const double count = record_pairs(metrics_, pairs.size(), batch.groups());
  if (pairs.empty()) return;
  model_->enter_slot(batch.slot());

  double loss_sum = 0;
  const PairPasses passes = passes_of_pairs(batch.layout(), pairs, pass_tokens_);
  for (const std::vector<SamplePair>& pass : passes.together) {
    if (batch.is_last() && passes.apart.empty() && &pass == &passes.together.back()) model_->expect_last_backward();
    loss_sum += accumulate_gradient(loss_of(batch, pass, rewards_of(batch, PairedSamples(pass).samples())), "loss");
  }
  for (const SamplePair& pair : passes.apart) {
    const PairedSamples paired({pair});
    loss_sum += accumulate_in_parts(
        2, [&](size_t i) { return rewards_of(batch, std::span(paired.samples()).subspan(i, 1)); },
        [&](const at::Tensor& rewards) { return loss_of(batch, {pair}, rewards); }, "loss");
  }
  metrics_.mean("reward_model/loss", loss_sum / count, count);
  router_metrics_.record_passes();
  totals_.add(kPairTotal, count);
}

at::Tensor TrainReward::rewards_of(const engine::MicroBatch& batch, std::span<const size_t> chosen) {
  router_metrics_.expect(counted_of_pairs(chosen.size()));
  const RaggedSamples samples = some_samples(batch.read(columns::kTokens), batch.layout(), chosen);
  return token_values(model_->forward(), samples, last_tokens(samples.sample_offsets));
}

at::Tensor TrainReward::loss_of(const engine::MicroBatch& batch, const std::vector<SamplePair>& pairs,
                                const at::Tensor& rewards) {
  const PairedSamples paired(pairs);
  const at::Tensor chosen = paired.chosen(rewards), rejected = paired.rejected(rewards);  // [P]
  at::Tensor difference = chosen.sub(rejected);
  if (batch.has(kMargin.spec())) difference = difference.sub(margins_of(batch, pairs));
  at::Tensor losses = at::log_sigmoid(difference).neg();
  if (params_.centre_coefficient > 0) losses = losses.add(chosen.add(rejected).square().mul(params_.centre_coefficient));
  record(chosen.detach().to(at::kDouble), rejected.detach().to(at::kDouble));
  return losses.sum();
}

void TrainReward::record(const at::Tensor& chosen, const at::Tensor& rejected) {
  const auto pairs = static_cast<double>(chosen.numel());
  const auto mean = [&](const char* name, const at::Tensor& x) { metrics_.mean(name, x.mean().item().toDouble(), pairs); };
  mean("preference/accuracy", chosen.gt(rejected).to(at::kDouble));
  mean("preference/reward_margin", chosen.sub(rejected));
  mean("preference/chosen_reward_mean", chosen);
  mean("preference/rejected_reward_mean", rejected);
}

void TrainReward::end_iteration(const engine::Iteration& iteration) {
  router_metrics_.record_step();
  finish_iteration(*model_, totals_.sum_of_all(kPairTotal), iteration, metrics_, "reward_model");
}

}  // namespace sluice::nodes
