#include "nodes/objectives/dppo.h"

#include "base/error.h"
#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

// [K] the probability of all other tokens together, above 0: a token may be certain in float32.
at::Tensor probability_of_others(const at::Tensor& logprobs) { return logprobs.expm1().neg().clamp_min(1e-8); }

// [K]
at::Tensor binary_divergence(Divergence divergence, const at::Tensor& logprobs, const at::Tensor& old_logprobs) {
  const at::Tensor before = old_logprobs.exp();
  switch (divergence) {
    case Divergence::kTv:
      return logprobs.exp().sub(before).abs();
    case Divergence::kKl: {
      const at::Tensor others_before = probability_of_others(old_logprobs), others = probability_of_others(logprobs);
      return before.mul(old_logprobs.sub(logprobs)).add(others_before.mul(others_before.div(others).log()));
    }
  }
  throw InternalError("unknown divergence");
}

}  // namespace

void Dppo::describe(engine::Contract<DppoParams>& c) {
  using P = DppoParams;
  c.type("dppo", "surrogate on the probability ratio of each action within a trust region by divergence");
  c.param("divergence", &P::divergence)
      .doc("of the old policy and the trained one at a token, by the sampled token's probability; tv: total variation, kl");
  c.param("clip_low", &P::clip_low)
      .at_least(0)
      .recorded_as("policy/clip_low")
      .doc("an action that became less likely pays up to this divergence; with kl usual is 0.05");
  c.param("clip_high", &P::clip_high).at_least(0).recorded_as("policy/clip_high").doc("likewise, one that became likelier");
  describe_policy_loss(c);
  c.metric("policy/divergence_mean", engine::Metric::kMean, "mean over the actions of that divergence");
  c.metric("policy/divergence_max", engine::Metric::kMaximum, "largest such divergence");
  c.metric("policy/clip_fraction_low", engine::Metric::kMean,
           "part of the actions that became less likely by more than clip_low and do not pay any more");
  c.metric("policy/clip_fraction_high", engine::Metric::kMean,
           "part of the actions that became likelier by more than clip_high, likewise");
}

Surrogate Dppo::surrogate(const PolicyTerms& terms) const {
  const at::Tensor logprobs = terms.logprobs.detach();  // the region is a constant
  const at::Tensor divergence = binary_divergence(params_.divergence, logprobs, terms.old_logprobs);
  const at::Tensor rises = terms.advantages.gt(0), likelier = logprobs.gt(terms.old_logprobs);
  const at::Tensor low = divergence.gt(params_.clip_low.at(terms.iteration))
                             .logical_and(logprobs.lt(terms.old_logprobs))
                             .logical_and(rises.logical_not());
  const at::Tensor high = divergence.gt(params_.clip_high.at(terms.iteration)).logical_and(likelier).logical_and(rises);
  const at::Tensor losses = exp_log_ratio(terms.log_ratio()).mul(terms.advantages).neg();
  return {.losses = losses.masked_fill(low.logical_or(high), 0),
          .metrics = {mean_metric("policy/divergence_mean", divergence), maximum_metric("policy/divergence_max", divergence),
                      mean_metric("policy/clip_fraction_low", low), mean_metric("policy/clip_fraction_high", high)}};
}

}  // namespace sluice::nodes
