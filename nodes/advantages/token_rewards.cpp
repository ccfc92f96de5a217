#include "nodes/advantages/token_rewards.h"

#include <algorithm>
#include <cmath>

#include "nodes/advantages/rewards.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::Findings;
using engine::MicroBatch;
using engine::NodeNeeds;
using engine::Range;

namespace {

constexpr const char* kKlTotal = "kl";  // of samples, by kl_measure

void check_token_rewards(const TokenRewardsParams& params, Findings& findings) {
  for (const char* key : {"kl_estimator", "clamp_input", "clamp_output", "logprobs"}) {
    if (params.penalised() || !findings.changed(key)) continue;
    findings.without_effect(key, std::string(key) + " has no effect while kl_coefficient is 0",
                            "set kl_coefficient, or remove " + std::string(key));
  }
  if (params.penalised() && params.logprobs == columns::kReferenceLogprobs.name) {
    findings.error("logprobs", "the KL of reference_logprobs against itself is always 0",
                   "name the policy's column, such as rollout_logprobs");
  }
  if (params.adaptive() && findings.changed("kl_coefficient")) {
    findings.without_effect_beside("kl_coefficient", "kl_controller",
                                   "kl_coefficient has no effect beside an adaptive kl_controller",
                                   "give the controller initial = ..., and remove kl_coefficient");
  }
  if (!params.adaptive() && findings.changed("kl_measure")) {
    findings.without_effect("kl_measure", "kl_measure has no effect while the coefficient is fixed",
                            "kl_controller = { type = \"adaptive_kl\", ... }, or remove kl_measure");
  }
  const auto& clip = params.score_clip;
  if (!clip.empty() && (clip.size() != 2 || clip[0] >= clip[1])) {
    findings.error("score_clip", "score_clip must be a lower and a higher bound", "for example score_clip = [-5.0, 5.0]");
  }
}

}  // namespace

void TokenRewards::describe(engine::Contract<TokenRewardsParams>& c) {
  using P = TokenRewardsParams;
  c.type("token_rewards", "score on the last action, minus a KL penalty on every action");
  c.param("kl_coefficient", &P::kl_coefficient).at_least(0).doc("weight of the KL penalty; 0: none, and no reference is read");
  describe_kl(c, "kl_estimator");
  c.param("kl_controller", &P::kl_controller).doc("what changes the weight from iteration to iteration; fixed_kl: nothing");
  c.param("kl_measure", &P::kl_measure)
      .doc("what an adaptive controller steers: mean over the samples of the sum (sequence) or mean (token) over actions");
  c.param("score_clip", &P::score_clip).doc("lower and higher bound of the score; empty: none");
  c.param("logprobs", &P::logprobs).doc("action column with the policy's log-probabilities");
  c.reads(columns::kScore);
  c.reads_if([](const P& params) { return params.penalised(); }, columns::kReferenceLogprobs);
  c.needs([](const P& params, NodeNeeds& needs) {
    if (params.penalised()) needs.reads.push_back({params.logprobs, engine::DType::kFloat32, engine::Extent::kAction});
  });
  c.reads_if_written(columns::kStepRewards, columns::kMask);
  c.writes(columns::kTokenRewards);
  c.metric("reward/kl_coefficient", engine::Metric::kValue, "weight of the KL penalty in this iteration");
  c.metric("reward/token_reward_mean", engine::Metric::kMean, "mean reward of an action, penalty included");
  c.total_if([](const TokenRewardsParams& params) { return params.adaptive(); }, kKlTotal);
  c.check(check_token_rewards);
}

TokenRewards::TokenRewards(const TokenRewardsParams& params, engine::NodeResources& resources)
    : params_(params),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      adapted_(params.adaptive() ? *params.kl_controller.object->initial() : 0) {}

double TokenRewards::coefficient(int64_t iteration) const {
  return params_.adaptive() ? adapted_ : params_.kl_coefficient.at(iteration);
}

void TokenRewards::process(MicroBatch& batch) {
  auto rewards = batch.write(columns::kTokenRewards);  // [A], zero
  const ActionMask mask(batch);
  if (params_.penalised()) subtract_penalty(batch, mask, rewards);
  add_scores(batch, mask, rewards);

  double sum = 0;
  for (size_t a = 0; a < rewards.size(); ++a) sum += mask.weight(a) * rewards[a];
  const double count = mask.total(rewards.size());
  metrics_.mean("reward/token_reward_mean", sum / count, count);
}

void TokenRewards::subtract_penalty(MicroBatch& batch, const ActionMask& mask, std::span<float> rewards) {
  const auto policy = batch.read(engine::Column<float>{params_.logprobs.c_str(), engine::Extent::kAction});  // [A]
  const auto reference = batch.read(columns::kReferenceLogprobs);                                            // [A]
  const double weight_of_kl = coefficient(batch.iteration());
  for (const Range actions : batch.actions_by_sample()) {
    double sum = 0, weight = 0;  // of the sample
    for (size_t a = actions.begin; a < actions.end; ++a) {
      if (!mask.keeps(a)) continue;
      const double kl = params_.estimate(policy[a], reference[a]);
      rewards[a] = static_cast<float>(0 - weight_of_kl * kl);
      sum += mask.weight(a) * kl;
      weight += mask.weight(a);
    }
    if (weight == 0) continue;
    if (params_.adaptive()) totals_.add(kKlTotal, params_.kl_measure == KlMeasure::kSequence ? sum : sum / weight);
  }
}

void TokenRewards::add_scores(MicroBatch& batch, const ActionMask& mask, std::span<float> rewards) const {
  const auto scores = scores_that_count(batch);  // [S]
  size_t sample = 0;
  for (const Range actions : batch.actions_by_sample()) {
    const float score = scores[sample++];
    const double clipped =
        params_.score_clip.empty() ? score : std::clamp<double>(score, params_.score_clip[0], params_.score_clip[1]);
    if (const auto last = mask.last_kept(actions)) rewards[*last] += static_cast<float>(clipped);
  }
  if (!batch.has(columns::kStepRewards.spec())) return;
  const auto steps = kept_step_rewards(batch, mask);  // [A]
  for (size_t a = 0; a < rewards.size(); ++a) {
    if (mask.keeps(a) && !std::isnan(steps[a])) rewards[a] += steps[a];
  }
}

void TokenRewards::end_iteration(const engine::Iteration& iteration) {
  if (!params_.penalised()) return;
  metrics_.value("reward/kl_coefficient", coefficient(iteration.index));
  if (!params_.adaptive()) return;
  const ExactMoments& kl = totals_.of_all(kKlTotal);
  if (kl.count() > 0) adapted_ = params_.kl_controller.object->next(adapted_, kl.mean(), kl.count());
}

// Controllers are formulas without memory: the coefficient is all that moves.
void TokenRewards::save(engine::StateWriter& state) const {
  if (params_.adaptive()) state.put("kl_coefficient", adapted_);
}

// A run whose coefficient was fixed so far begins with that of the controller.
void TokenRewards::load(const engine::StateReader& state) {
  if (params_.adaptive() && state.has("kl_coefficient")) adapted_ = state.number("kl_coefficient");
}

}  // namespace sluice::nodes
