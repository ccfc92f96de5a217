#include "nodes/objectives/rejection.h"

#include "nodes/objectives/kl_estimate.h"

namespace sluice::nodes {

namespace {

// What the bounds are of, one entry an action.
at::Tensor bounded_estimates(Rejection rejection, const at::Tensor& estimates, const KeptActions& kept) {
  switch (rejection) {
    case Rejection::kSequenceSum:
      return kept.to_actions(kept.sum_by_sample(estimates));
    case Rejection::kSequenceMean:
      return kept.to_actions(kept.mean_by_sample(estimates));
    default:
      return estimates;
  }
}

}  // namespace

at::Tensor rejected_actions(const RejectionOptions& options, const at::Tensor& old_logprobs, const at::Tensor& rollout_logprobs,
                            const KeptActions& kept, std::vector<ObjectiveMetric>& metrics) {
  const at::Tensor log_ratio = rollout_logprobs.sub(old_logprobs.detach());
  const at::Tensor bounded = bounded_estimates(options.rejection, kl_estimates(options.estimator, log_ratio), kept);  // [K]
  at::Tensor outside = bounded.gt(options.maximum).logical_or(bounded.lt(options.minimum));
  if (options.rejection == Rejection::kSequenceMax)
    outside = kept.to_actions(kept.sum_by_sample(outside.to(bounded.scalar_type()))).gt(0);
  metrics.push_back(mean_metric("policy/rejection_estimate_mean", bounded));
  metrics.push_back(maximum_metric("policy/rejection_estimate_max", bounded));
  metrics.push_back(mean_metric("policy/rejected", outside));
  return outside;
}

}  // namespace sluice::nodes
