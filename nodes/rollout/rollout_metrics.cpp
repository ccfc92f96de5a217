#include "nodes/rollout/rollout_metrics.h"

#include <algorithm>
#include <utility>

#include "engine/contract/columns/contract_breach.h"
#include "engine/observe/guess_metrics.h"
#include "nodes/rollout/completed_group.h"

namespace sluice::nodes {
namespace {

constexpr const char* kDroppedPrompts = "rollout/dropped_prompts";
constexpr const char* kWeightUpdates = "engine/weight_updates";
constexpr const char* kPreemptedSamples = "engine/preempted_samples";
constexpr const char* kRecomputedTokens = "engine/recomputed_tokens";

}  // namespace

void RolloutMetrics::describe(engine::Contract<GenerateParams>& c) {
  using P = GenerateParams;
  c.metric("rollout/response_length_mean", engine::Metric::kMean, "mean tokens of a response, replies among them");
  c.metric("rollout/response_length_max", engine::Metric::kMaximum, "tokens of the longest response");
  c.metric("rollout/truncated", engine::Metric::kMean, "share of the responses that max_new_tokens cut");
  c.metric("rollout/stopped", engine::Metric::kMean,
           "share of the responses that a stop string ended, or the end of a last turn");
  c.metric("rollout/turns_mean", engine::Metric::kMean, "mean turns of the policy in a response, with an environment");
  c.metric("reward/environment_score", engine::Metric::kMoments,
           "mean and standard deviation over the responses of the environment's rewards");
  c.metrics_of(&P::environment);
  c.metric(kDroppedPrompts, engine::Metric::kSum,
           "groups that were dropped because of their prompt, with prompt_too_long = \"drop\"");
  c.metric(kWeightUpdates, engine::Metric::kSum,
           "times that samples which run went on with newer weights, with [schedule] update = \"immediately\"");
  c.metric("rollout/policy_lag_mean", engine::Metric::kMean,
           "mean over the actions of how many versions older than the trainer's the weights were that sampled it, with "
           "[schedule] update = \"immediately\"");
  c.metric(kPreemptedSamples, engine::Metric::kSum, "samples that lost their credit to older ones, where it is taken on demand");
  c.metric(kRecomputedTokens, engine::Metric::kSum, "tokens of these that are to be read again");
  const auto guesses = [](const P& params) { return params.speculation != Speculation::kNone; };
  c.metric_if(guesses, engine::metrics::kGuessedSteps, engine::Metric::kSum,
              "steps of samples in which tokens may be guessed, with speculation");
  c.metric_if(guesses, engine::metrics::kDraftedTokens, engine::Metric::kSum, "tokens that were guessed in them");
  c.metric_if(guesses, engine::metrics::kKeptDrafts, engine::Metric::kSum,
              "of these, those that were sampled: each saved a step of its sample");
  c.metric("memory/kv_used_bytes_max", engine::Metric::kMaximum, "most bytes of the KV pool that running samples used at a time");
}

RolloutMetrics::RolloutMetrics(const GenerateParams& params, const engine::NodeResources& resources)
    : params_(params),
      weights_may_change_(resources.update == engine::WeightUpdate::kImmediately),
      on_demand_(resources.admission == engine::Admission::kOnDemand),
      metrics_(*resources.metrics) {}

void RolloutMetrics::record(const RunningGroup& group) {
  if (drops_prompts()) metrics_.sum(kDroppedPrompts, 0);
  for (int64_t sample = 0; sample < params_.samples_per_prompt; ++sample) {
    const Response& response = group.responses[static_cast<size_t>(sample)];
    record(response);
    if (weights_may_change_) record_lag(response, group.group.iteration);
  }
}

void RolloutMetrics::record(const Response& response) {
  metrics_.mean("rollout/response_length_mean", static_cast<double>(response.result.tokens.size()));
  metrics_.maximum("rollout/response_length_max", static_cast<double>(response.result.tokens.size()));
  metrics_.mean("rollout/truncated", response.summary.finish == Finish::kLength);
  if (!params_.stop.empty() || params_.has_environment())
    metrics_.mean("rollout/stopped", response.summary.finish == Finish::kStopString);
  if (params_.has_environment()) record_environment(response.summary);
}

void RolloutMetrics::record_environment(const Turns::Summary& summary) {
  metrics_.mean("rollout/turns_mean", static_cast<double>(summary.turns));
  metrics_.moments("reward/environment_score", summary.score);
  for (const auto& [name, count] : summary.counts) check_declared(name);
  for (const engine::MetricSpec& metric : params_.environment.metrics) {
    const auto count = summary.counts.find(metric.name);
    metrics_.mean(metric.name, count == summary.counts.end() ? 0 : count->second);
  }
}

void RolloutMetrics::check_declared(const std::string& count) const {
  const auto& metrics = params_.environment.metrics;
  if (std::ranges::find(metrics, count, &engine::MetricSpec::name) == metrics.end())
    engine::throw_contract_breach("the environment counts '" + count + "', which its contract does not declare as a metric");
}

void RolloutMetrics::record_lag(const Response& response, int64_t iteration) {
  for (const int64_t token : sampled_tokens(response.result, /*prompt=*/0)) {
    const int64_t version = version_of(response.versions, static_cast<size_t>(token));
    metrics_.mean("rollout/policy_lag_mean", static_cast<double>(iteration - version));
  }
}

void RolloutMetrics::record_step(const models::StepWork& work) {
  if (!guesses()) return;
  metrics_.sum(engine::metrics::kGuessedSteps, static_cast<double>(work.guessed_steps));
  metrics_.sum(engine::metrics::kDraftedTokens, static_cast<double>(work.drafted_tokens));
  metrics_.sum(engine::metrics::kKeptDrafts, static_cast<double>(work.kept_drafts));
}

void RolloutMetrics::record_dropped_prompt() { metrics_.sum(kDroppedPrompts, 1); }

void RolloutMetrics::record_weight_update() { metrics_.sum(kWeightUpdates, 1); }

void RolloutMetrics::record_preempted(int64_t recomputed_tokens) {
  metrics_.sum(kPreemptedSamples, 1);
  metrics_.sum(kRecomputedTokens, static_cast<double>(recomputed_tokens));
}

void RolloutMetrics::record_kv(int64_t bytes) {
  iteration_kv_bytes_ = std::max(iteration_kv_bytes_, bytes);
  most_kv_bytes_ = std::max(most_kv_bytes_, bytes);
}

void RolloutMetrics::end_iteration() {
  record_step({});
  metrics_.maximum("memory/kv_used_bytes_max", static_cast<double>(std::exchange(iteration_kv_bytes_, 0)));
  if (weights_may_change_) metrics_.sum(kWeightUpdates, 0);
  if (on_demand_) {
    metrics_.sum(kPreemptedSamples, 0);
    metrics_.sum(kRecomputedTokens, 0);
  }
  if (drops_prompts()) metrics_.sum(kDroppedPrompts, 0);
}

}  // namespace sluice::nodes
