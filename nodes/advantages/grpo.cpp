#include "nodes/advantages/grpo.h"

#include <algorithm>
#include <cmath>

#include "nodes/columns/columns.h"
#include "nodes/statistics/moments.h"

namespace sluice::nodes {

using engine::Findings;
using engine::MicroBatch;
using engine::NodeNeeds;
using engine::Range;

namespace {

constexpr const char* kRewardTotal = "rewards";  // of the samples that count

void check_grpo(const GrpoParams& params, Findings& findings) {
  for (const char* key : {"epsilon", "epsilon_placement", "std", "std_over"}) {
    if (params.normalize_std || !findings.changed(key)) continue;
    findings.without_effect(key, std::string(key) + " has no effect while normalize_std is false",
                            "normalize_std = true, or remove " + std::string(key));
  }
  if (params.std_over == StdOver::kIteration && params.baseline == GrpoBaseline::kLeaveOneOut) {
    findings.error("std_over", "baseline = \"leave_one_out\" takes the std of the other samples of the group",
                   "std_over = \"group\", or baseline = \"group_mean\"");
  }
  if (params.supervision == Supervision::kOutcome) return;
  if (params.baseline == GrpoBaseline::kLeaveOneOut) {
    findings.error("baseline", "the rewards of steps are compared with those of the whole group", "baseline = \"group_mean\"");
  }
  if (params.std_over == StdOver::kIteration) {
    findings.error("std_over", "the rewards of steps are divided by the std of their group", "std_over = \"group\"");
  }
}

}  // namespace

void Grpo::describe(engine::Contract<GrpoParams>& c) {
  using P = GrpoParams;
  c.type("grpo", "reward relative to the other samples of the group, in standard deviations");
  c.param("normalize_std", &P::normalize_std).doc("false: only the mean is subtracted, as Dr. GRPO does");
  c.param("epsilon", &P::epsilon).at_least(0).doc("keeps the division finite where all rewards are nearly equal");
  c.param("epsilon_placement", &P::epsilon_placement).doc("outside: std + epsilon, inside: sqrt(variance + epsilon)");
  c.param("std", &P::std).doc("squares over n - 1 (bessel) or over n (biased)");
  c.param("std_over", &P::std_over).doc("whose std: of the group, or of all rewards of the iteration");
  c.param("baseline", &P::baseline).doc("compared with the whole group (group_mean) or with its other samples (leave_one_out)");
  describe_lone_sample(c);
  c.param("supervision", &P::supervision).doc("outcome: a reward a sample; process: step_rewards, one where a step ends");
  c.needs([](const P& params, NodeNeeds& needs) {
    if (params.supervision == Supervision::kProcess) {
      needs.reads.push_back(columns::kStepRewards.spec());
      needs.least_samples = 1;  // its steps are compared with each other
      return;
    }
    needs.choices.push_back({{columns::kTokenRewards.spec(), columns::kScore.spec()}, true});
  });
  c.reads_if_written(columns::kMask);
  c.iteration_scope_if([](const P& p) { return p.std_over == StdOver::kIteration; }, "std_over = \"iteration\"");
  c.total_if([](const P& p) { return p.std_over == StdOver::kIteration; }, kRewardTotal);
  c.check(check_grpo);
  describe_group_relative(c);
}

void Grpo::process(MicroBatch& batch) {
  if (params_.supervision == Supervision::kProcess)
    process_steps(batch);
  else
    GroupRelative::process(batch);
}

void Grpo::gather(int64_t, std::span<MicroBatch> batches) {
  ExactMoments& rewards = totals_.mine(kRewardTotal);
  for (const MicroBatch& batch : batches) {
    for (const Counted& counted : counted_groups(batch))
      for (const double reward : counted.group.rewards) rewards.add(reward);
  }
}

void Grpo::process_iteration(int64_t step, std::span<MicroBatch> batches) {
  iteration_variance_ = moments_of(totals_.of_all(kRewardTotal), params_.std).variance;
  GroupRelative::process_iteration(step, batches);
}

std::vector<double> Grpo::advantages_of(const RewardedGroup& group) const {
  const bool by_others = params_.baseline == GrpoBaseline::kLeaveOneOut && group.rewards.size() > 1;
  return by_others ? normalised_by_others(group.rewards) : normalised(group.rewards);
}

// Equal rewards are 0 whatever divides them, also 0.
double Grpo::scaled(double centred, double variance) const {
  if (!params_.normalize_std || centred == 0) return centred;
  if (params_.epsilon_placement == EpsilonPlacement::kInside) return centred / std::sqrt(variance + params_.epsilon);
  return centred / (std::sqrt(variance) + params_.epsilon);
}

std::vector<double> Grpo::normalised(std::span<const double> rewards) const {
  if (rewards.size() == 1) return {params_.lone_sample == LoneSample::kScore ? rewards[0] : 0};
  const Moments moments = moments_of(rewards, params_.std);
  std::vector<double> advantages;
  for (const double reward : rewards)
    advantages.push_back(scaled(reward - moments.mean, iteration_variance_.value_or(moments.variance)));
  return advantages;
}

std::vector<double> Grpo::normalised_by_others(std::span<const double> rewards) const {
  std::vector<double> advantages;
  for (size_t i = 0; i < rewards.size(); ++i) {
    std::vector<double> others(rewards.begin(), rewards.end());
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const Moments moments = moments_of(others, params_.std);
    const double centred = rewards[i] - moments.mean;
    advantages.push_back(moments.variance == 0 ? centred : scaled(centred, moments.variance));
  }
  return advantages;
}

void Grpo::process_steps(MicroBatch& batch) {
  const ActionMask mask(batch);
  const auto step_rewards = kept_step_rewards(batch, mask);  // [A]
  auto advantages = batch.write(columns::kAdvantages);       // [A], zero
  const std::vector<Range> actions = batch.actions_by_sample();
  const auto ends_step = [&](size_t a) { return mask.keeps(a) && !std::isnan(step_rewards[a]); };

  for (const Range samples : batch.layout().samples_by_group()) {
    RewardedGroup steps;
    for (size_t s = samples.begin; s < samples.end; ++s)
      for (size_t a = actions[s].begin; a < actions[s].end; ++a)
        if (ends_step(a)) steps.rewards.push_back(step_rewards[a]);
    const std::vector<double> values = steps.rewards.empty() ? std::vector<double>() : normalised(steps.rewards);

    size_t step = values.size();
    for (size_t s = samples.end; s-- > samples.begin;) {
      double to_go = 0;
      for (size_t a = actions[s].end; a-- > actions[s].begin;) {
        if (ends_step(a)) to_go += values[--step];
        if (mask.keeps(a)) advantages[a] = static_cast<float>(to_go);
      }
    }
    record(steps, std::ranges::all_of(values, [](double value) { return value == 0; }));
  }
}

}  // namespace sluice::nodes
