#include "nodes/objectives/policy_loss.h"

#include "base/error.h"
#include "nodes/objectives/checked_losses.h"
#include "nodes/objectives/kl_estimate.h"
#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

at::Tensor clamped(const at::Tensor& x, const std::optional<double>& bound) { return bound ? x.clamp(-*bound, *bound) : x; }

at::Tensor kl_term(const PolicyLossParams& params, const at::Tensor& logprobs, const at::Tensor& reference) {
  const at::Tensor log_ratio = logprobs.sub(reference);
  const at::Tensor estimate =
      clamped(kl_estimates(params.kl_estimator, clamped(log_ratio, params.kl_clamp_input)), params.kl_clamp_output);
  if (params.kl_gradient == KlGradient::kDirect) return estimate;
  const at::Tensor slope = kl_estimates(KlEstimator::kK2, log_ratio);
  return slope.sub(slope.detach()).add(estimate.detach());
}

KeptActions kept_of(const ObjectiveInputs& inputs) {
  return {inputs.mask, inputs.action_offsets, inputs.logprobs.options().requires_grad(false)};
}

PolicyTerms terms_of(const ObjectiveInputs& inputs, const KeptActions& kept) {
  return {.logprobs = kept.of(inputs.logprobs),
          .old_logprobs = kept.of(inputs.old_logprobs),
          .advantages = kept.of(inputs.advantages),
          .kept = kept,
          .iteration = inputs.iteration,
          .draws = kept.of(inputs.draws),
          .step = inputs.step};
}

void add_ratio_metrics(const PolicyTerms& terms, std::vector<ObjectiveMetric>& metrics) {
  const at::Tensor log_ratio = terms.log_ratio().detach();
  const at::Tensor ratio = exp_log_ratio(log_ratio);
  metrics.push_back(mean_metric("policy/ratio_mean", ratio));
  metrics.push_back(maximum_metric("policy/ratio_max", ratio));
  metrics.push_back(mean_metric("policy/kl_mean", ratio.sub(1).sub(log_ratio)));
}

bool reads_behaviour_policy(const PolicyLossParams& params) {
  return params.correction != Correction::kNone || params.rejection != Rejection::kNone;
}

void check_rejection(const PolicyLossParams& params, engine::Findings& findings) {
  if (!params.rejection_max)
    return findings.error("rejection", "rejection needs a bound", "rejection_max = 0.01, or rejection = \"none\"");
  if (!params.rejection_min) return;
  if (params.rejection_estimator != KlEstimator::kK1) {
    findings.without_effect("rejection_min", "rejection_min has no effect: only k1 gives estimates below 0",
                            "remove rejection_min");
  } else if (*params.rejection_min > *params.rejection_max) {
    findings.error("rejection_min", "rejection_min is above rejection_max: everything would be rejected", "swap the two");
  }
}

}  // namespace

void check_policy_loss(const PolicyLossParams& params, engine::Findings& findings) {
  const auto no_effect = [&](const char* key, const std::string& why) {
    if (findings.changed(key))
      findings.without_effect(key, std::string(key) + " has no effect " + why, std::string("remove ") + key);
  };
  if (params.aggregation != Aggregation::kSequenceSum) no_effect("sequence_constant", "unless aggregation is \"sequence_sum\"");
  if (params.correction == Correction::kNone) {
    for (const char* key : {"correction_level", "correction_max", "correction_min"})
      no_effect(key, "while correction is \"none\"");
  } else if (params.correction_min > params.correction_max) {
    findings.error("correction_min", "correction_min is above correction_max: no weight fits", "swap the two");
  }
  if (params.rejection == Rejection::kNone) {
    for (const char* key : {"rejection_estimator", "rejection_max", "rejection_min"})
      no_effect(key, "while rejection is \"none\"");
  } else {
    check_rejection(params, findings);
  }
  if (params.kl_coefficient.is(0)) {
    for (const char* key : {"kl_estimator", "kl_gradient", "kl_clamp_input", "kl_clamp_output"})
      no_effect(key, "while kl_coefficient is 0");
  }
}

ObjectiveNeeds PolicyObjective::needs() const {
  const bool reads_behaviour = reads_behaviour_policy(loss_);
  return {.old_logprobs = takes_ratio() || reads_behaviour,
          .rollout_logprobs = reads_behaviour,
          .reference_logprobs = !loss_.kl_coefficient.is(0),
          .entropy = !loss_.entropy_coefficient.is(0),
          .draws = takes_draws()};
}

void PolicyObjective::look_at(int look, const ObjectiveInputs& inputs, StepSums& sums) const {
  const KeptActions kept = kept_of(inputs);
  if (kept.count() > 0) this->look(look, terms_of(inputs, kept), sums);
}

ObjectiveResult PolicyObjective::compute(const ObjectiveInputs& inputs) const {
  const KeptActions kept = kept_of(inputs);
  const PolicyTerms terms = terms_of(inputs, kept);
  if (kept.count() == 0) return {.loss_sum = terms.logprobs.sum(), .count = 0, .metrics = {}};

  Surrogate surrogate = this->surrogate(terms);
  check_losses(surrogate.losses, terms.logprobs, kept.count(), "action");
  if (terms.old_logprobs.defined()) add_ratio_metrics(terms, surrogate.metrics);
  at::Tensor losses = corrected(surrogate.losses, inputs, terms, surrogate.metrics);
  losses = with_penalties(losses, inputs, terms, surrogate.metrics);
  return aggregated(losses, kept, std::move(surrogate.metrics));
}

at::Tensor PolicyObjective::corrected(at::Tensor losses, const ObjectiveInputs& inputs, const PolicyTerms& terms,
                                      std::vector<ObjectiveMetric>& metrics) const {
  if (!reads_behaviour_policy(loss_)) return losses;
  const at::Tensor rollout_logprobs = terms.kept.of(inputs.rollout_logprobs);  // [K]
  if (loss_.correction != Correction::kNone) {
    const CorrectionOptions options{loss_.correction, loss_.correction_level, loss_.correction_min, loss_.correction_max};
    losses = losses.mul(importance_weights(options, terms.old_logprobs, rollout_logprobs, terms.kept, metrics));
  }
  if (loss_.rejection != Rejection::kNone) {
    const double maximum = loss_.rejection_max.value(), minimum = loss_.rejection_min.value_or(-maximum);
    const RejectionOptions options{loss_.rejection, loss_.rejection_estimator, minimum, maximum};
    losses = losses.masked_fill(rejected_actions(options, terms.old_logprobs, rollout_logprobs, terms.kept, metrics), 0);
  }
  return losses;
}

at::Tensor PolicyObjective::with_penalties(at::Tensor losses, const ObjectiveInputs& inputs, const PolicyTerms& terms,
                                           std::vector<ObjectiveMetric>& metrics) const {
  if (!loss_.kl_coefficient.is(0)) {
    const at::Tensor kl = kl_term(loss_, terms.logprobs, terms.kept.of(inputs.reference_logprobs));  // [K]
    metrics.push_back(mean_metric("policy/kl_loss_mean", kl));
    losses = losses.add(kl, loss_.kl_coefficient.at(terms.iteration));
  }
  if (!loss_.entropy_coefficient.is(0))
    losses = losses.sub(terms.kept.of(inputs.entropy), loss_.entropy_coefficient.at(terms.iteration));
  return losses;
}

ObjectiveResult PolicyObjective::aggregated(const at::Tensor& losses, const KeptActions& kept,
                                            std::vector<ObjectiveMetric> metrics) const {
  const auto samples = static_cast<double>(kept.samples());
  switch (loss_.aggregation) {
    case Aggregation::kTokenMean:
      return {kept.weighted(losses).sum(), kept.total_weight(), std::move(metrics)};
    case Aggregation::kSampleMean:
      return {kept.mean_by_sample(losses).sum(), samples, std::move(metrics)};
    case Aggregation::kSequenceSum:
      return {kept.weighted(losses).sum().div(loss_.sequence_constant), samples, std::move(metrics)};
  }
  throw InternalError("unknown aggregation");
}

}  // namespace sluice::nodes
