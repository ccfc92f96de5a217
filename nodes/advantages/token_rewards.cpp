#include "nodes/advantages/token_rewards.h"

#include "nodes/columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::NodeNeeds;
using engine::Range;

void TokenRewards::describe(engine::Contract<TokenRewardsParams>& c) {
  using P = TokenRewardsParams;
  const auto penalised = [](const P& params) { return params.kl_coefficient != 0; };
  c.type("token_rewards", "score on the last action, minus a KL penalty on every action");
  c.param("kl_coefficient", &P::kl_coefficient).at_least(0).doc("weight of the KL penalty; 0: none, and no reference is read");
  c.param("kl_estimator", &P::kl_estimator)
      .doc("k1: log ratio, k2: half its square, k3: exp(-k1) - 1 + k1, abs: its absolute value");
  c.param("logprobs", &P::logprobs).doc("action column with the policy's log-probabilities");
  c.reads(columns::kScore);
  c.reads_if(penalised, columns::kReferenceLogprobs);
  c.needs([=](const P& params, NodeNeeds& needs) {
    if (penalised(params)) needs.reads.push_back({params.logprobs, engine::DType::kFloat32, engine::Extent::kAction});
  });
  c.writes(columns::kTokenRewards);
  c.metric("kl_mean", "mean over the actions of log policy - log reference (k1)");
  c.metric("kl_k3_mean", "the same divergence by the k3 estimator, which is never negative");
  c.metric("token_reward_mean", "mean reward of an action, penalty included");
  c.check([=](const P& params, engine::Findings& findings) {
    for (const char* key : {"kl_estimator", "logprobs"}) {
      if (penalised(params) || !findings.changed(key)) continue;
      findings.without_effect(key, std::string(key) + " has no effect while kl_coefficient is 0",
                              "set kl_coefficient, or remove " + std::string(key));
    }
    if (penalised(params) && params.logprobs == columns::kReferenceLogprobs.name) {
      findings.error("logprobs", "the KL of reference_logprobs against itself is always 0",
                     "name the policy's column, such as rollout_logprobs");
    }
  });
}

void TokenRewards::process(MicroBatch& batch) {
  const auto scores = batch.read(columns::kScore);     // [S]
  auto rewards = batch.write(columns::kTokenRewards);  // [A], zero

  if (params_.kl_coefficient != 0) subtract_penalty(batch, rewards);
  size_t sample = 0;
  for (const Range actions : batch.actions_by_sample()) {
    if (actions.size() > 0) rewards[actions.end - 1] += scores[sample];
    ++sample;
  }

  double sum = 0;
  for (const float reward : rewards) sum += reward;
  const auto count = static_cast<double>(rewards.size());
  metrics_.mean("token_reward_mean", sum / count, count);
}

void TokenRewards::subtract_penalty(MicroBatch& batch, std::span<float> rewards) {
  const auto policy = batch.read(engine::Column<float>{params_.logprobs.c_str(), engine::Extent::kAction});  // [A]
  const auto reference = batch.read(columns::kReferenceLogprobs);                                            // [A]
  double k1 = 0, k3 = 0;
  for (size_t a = 0; a < rewards.size(); ++a) {
    rewards[a] = static_cast<float>(0 - params_.kl_coefficient * estimate_kl(params_.kl_estimator, policy[a], reference[a]));
    k1 += estimate_kl(KlEstimator::kK1, policy[a], reference[a]);
    k3 += estimate_kl(KlEstimator::kK3, policy[a], reference[a]);
  }
  const auto count = static_cast<double>(rewards.size());
  metrics_.mean("kl_mean", k1 / count, count);
  metrics_.mean("kl_k3_mean", k3 / count, count);
}

}  // namespace sluice::nodes
