#include "nodes/train/train_reward.h"

#include <ATen/ops/log_sigmoid.h>

#include <vector>

#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/train/gradient_in_parts.h"
#include "nodes/train/pair_metrics.h"

namespace sluice::nodes {
namespace {

// [P]
at::Tensor margins_of(const engine::MicroBatch& batch, const RankedSamples& ranked) {
  const auto margins = batch.read(columns::kMargin);  // [G]
  std::vector<float> of_pairs;
  for (const size_t group : ranked.groups) of_pairs.push_back(margins[group]);
  return action_tensor(of_pairs).clone();
}

void record_rankings(engine::MetricsRecorder& metrics, const std::vector<Ranking>& rankings, size_t groups) {
  size_t pairs = 0;
  for (const Ranking& ranking : rankings) pairs += ranking.pairs.size();
  metrics.sum("preference/pairs", static_cast<double>(pairs));
  metrics.sum("preference/groups_without_pair", static_cast<double>(groups - rankings.size()));
}

}  // namespace

void TrainReward::describe(engine::Contract<TrainRewardParams>& c) {
  using P = TrainRewardParams;
  c.type("train_reward", "one optimizer step an iteration of a reward model, on samples of which some are better than others");
  c.model("model", &P::model, engine::ModelUse::kUpdates, "value").required().doc("the reward model");
  c.param("compare", &P::compare)
      .doc(
          "best_and_worst: one pair of each group, all_pairs: every two samples of different scores, plackett_luce: their whole "
          "order at once");
  c.param("centre_coefficient", &P::centre_coefficient)
      .at_least(0)
      .doc("weight of the squared sum of a pair's two rewards, which keeps them around 0; usual is 0.01");
  c.reads(columns::kTokens, columns::kScore);
  c.reads_if_written(columns::kMask);
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    needs.least_samples = 2;
    if (params.compare != Comparison::kPlackettLuce) needs.choices.push_back({{columns::kMargin.spec()}, false});
  });
  c.check([](const P& params, engine::Findings& findings) {
    if (params.compare != Comparison::kPlackettLuce || params.centre_coefficient == 0) return;
    findings.error("centre_coefficient", "centre_coefficient is about pairs, and an order as a whole has none",
                   "compare = \"all_pairs\", or remove it");
  });
  describe_pair_metrics(c, "reward_model", "share of the pairs whose chosen sample has the higher reward");
  IterationStep::describe(c, "reward_model");
}

TrainReward::TrainReward(const TrainRewardParams& params, engine::NodeResources& resources)
    : params_(params), metrics_(*resources.metrics), step_(params.model, "reward_model", kPairTotal, resources) {}

void TrainReward::process(engine::MicroBatch& batch) {
  const std::vector<Ranking> rankings =
      rankings_by_score(batch.layout(), finite_scores(batch, columns::kScore.name), ActionMask(batch).weights(), params_.compare);
  record_rankings(metrics_, rankings, batch.groups());
  if (rankings.empty()) return;
  step_.enter(batch);

  double loss_sum = 0;
  const UnitPasses<Ranking> passes = passes_of_rankings(batch.layout(), rankings, step_.pass_tokens());
  for (const std::vector<Ranking>& pass : passes.together) {
    const RankedSamples ranked(pass);
    const at::Tensor rewards = rewards_of(batch, ranked.samples, ranked.counted, batch.is_last() && passes.is_last(pass));
    loss_sum += accumulate_gradient(loss_of(batch, ranked, rewards), "loss");
  }
  for (const Ranking& ranking : passes.apart) {
    const RankedSamples ranked({ranking});
    loss_sum += accumulate_in_parts(
        ranked.samples.size(),
        [&](size_t i) {
          return rewards_of(batch, std::span(ranked.samples).subspan(i, 1), std::span(ranked.counted).subspan(i, 1),
                            /*is_last=*/false);
        },
        [&](const at::Tensor& rewards) { return loss_of(batch, ranked, rewards); }, "loss");
  }
  step_.record(loss_sum, static_cast<double>(rankings.size()));
}

at::Tensor TrainReward::rewards_of(const engine::MicroBatch& batch, std::span<const size_t> chosen,
                                   std::span<const double> counted, bool is_last) {
  step_.begin_pass({counted.begin(), counted.end()}, is_last);
  const RaggedSamples samples = some_samples({batch.read(columns::kTokens)}, batch.layout(), chosen);
  return token_values(step_.forward(), samples, last_tokens(samples.sample_offsets));
}

at::Tensor TrainReward::loss_of(const engine::MicroBatch& batch, const RankedSamples& ranked, const at::Tensor& rewards) {
  const at::Tensor chosen = rewards.index_select(0, ranked.better), rejected = rewards.index_select(0, ranked.worse);  // [P]
  record(chosen.detach().to(at::kDouble), rejected.detach().to(at::kDouble));
  if (params_.compare == Comparison::kPlackettLuce) return plackett_luce_loss(ranked, rewards);
  at::Tensor difference = chosen.sub(rejected);
  if (batch.has(columns::kMargin.spec())) difference = difference.sub(margins_of(batch, ranked));
  at::Tensor losses = at::log_sigmoid(difference).neg();
  if (params_.centre_coefficient > 0) losses = losses.add(chosen.add(rejected).square().mul(params_.centre_coefficient));
  return losses.mul(ranked.weights).sum();
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
  step_.make();
  step_.end(iteration);
}

}  // namespace sluice::nodes
