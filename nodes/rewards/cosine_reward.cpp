#include "nodes/rewards/cosine_reward.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "nodes/columns/score_columns.h"
#include "nodes/columns/score_metrics.h"
#include "nodes/rewards/made_scores.h"

namespace sluice::nodes {

using engine::Range;

void CosineReward::describe(engine::Contract<CosineRewardParams>& c) {
  using P = CosineRewardParams;
  c.type("cosine_reward", "a reward for being right that depends on the length, along half a cosine");
  c.param("reads", &P::reads).doc("the column of a score that tells right from wrong");
  c.param("writes", &P::writes).doc("the column of the reward");
  c.param("max_tokens", &P::max_tokens).required().at_least(1).unit("tokens").doc("sampled tokens at which the cosine ends");
  c.param("correct_short", &P::correct_short)
      .between(-kLargestScore, kLargestScore)
      .doc("reward of a right sample without tokens");
  c.param("correct_long", &P::correct_long).between(-kLargestScore, kLargestScore).doc("reward of a right sample of max_tokens");
  c.param("wrong_short", &P::wrong_short).between(-kLargestScore, kLargestScore).doc("reward of a wrong sample without tokens");
  c.param("wrong_long", &P::wrong_long).between(-kLargestScore, kLargestScore).doc("reward of a wrong sample of max_tokens");
  c.param("exceeded", &P::exceeded)
      .between(-kLargestScore, kLargestScore)
      .doc("reward of any sample of max_tokens or more; unset: as the others");
  c.param("least_score", &P::least_score)
      .between(-kLargestScore, kLargestScore)
      .doc("a sample with at least this score is right");
  c.reads_named(&P::reads, engine::DType::kFloat32, engine::Extent::kSample);
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kSample);
  describe_scores(c);
  describe_counted_samples(c);
  describe_score_metric(c, "right", engine::Metric::kMean, "share of the samples that are right");
  describe_score_metric(c, "exceeded", engine::Metric::kMean, "share of the samples of max_tokens or more");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.reads == params.writes) {
      findings.error("writes", "'" + params.writes + "' is the column that is read",
                     "let the scorer write another column (its parameter writes)");
    }
    if (std::min(params.correct_short, params.correct_long) <= std::max(params.wrong_short, params.wrong_long)) {
      findings.warning("correct_long", "at some lengths a wrong sample has as much reward as a right one",
                       "rewards of right samples above those of wrong ones");
    }
  });
}

void CosineReward::process(engine::MicroBatch& batch) {
  const auto scores = finite_scores(batch, params_.reads);  // [S]
  const std::vector<Range> actions = batch.actions_by_sample();
  const std::vector<bool> counted = counted_samples(batch);
  std::vector<double> rewards;
  for (size_t s = 0; s < scores.size(); ++s) {
    const bool right = is_at_least(scores[s], params_.least_score);
    const auto length = static_cast<int64_t>(actions[s].size());
    rewards.push_back(reward_of(right, length));
    if (!counted[s]) continue;
    metrics_.mean(score_metric(params_.writes, "right"), right);
    metrics_.mean(score_metric(params_.writes, "exceeded"), length >= params_.max_tokens);
  }
  write_scores(batch, params_.writes, rewards, metrics_);
}

double CosineReward::reward_of(bool right, int64_t length) const {
  if (params_.exceeded && length >= params_.max_tokens) return *params_.exceeded;
  const double at_none = right ? params_.correct_short : params_.wrong_short;
  const double at_most = right ? params_.correct_long : params_.wrong_long;
  const double share = std::min(1.0, static_cast<double>(length) / static_cast<double>(params_.max_tokens));
  return at_most + (at_none - at_most) * (1 + std::cos(std::numbers::pi * share)) / 2;
}

}  // namespace sluice::nodes
