#include "nodes/objectives/importance_correction.h"

#include "base/error.h"
#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

// The weight before bounds, one entry an action.
at::Tensor raw_weights(CorrectionLevel level, const at::Tensor& log_ratio, const KeptActions& kept) {
  switch (level) {
    case CorrectionLevel::kToken:
      return exp_log_ratio(log_ratio);
    case CorrectionLevel::kSequence:
      return exp_log_ratio(kept.to_actions(kept.sum_by_sample(log_ratio)));
    case CorrectionLevel::kGeometric:
      return exp_log_ratio(kept.to_actions(kept.mean_by_sample(log_ratio)));
  }
  throw InternalError("unknown correction level");
}

}  // namespace

at::Tensor importance_weights(const CorrectionOptions& options, const at::Tensor& old_logprobs,
                              const at::Tensor& rollout_logprobs, const KeptActions& kept,
                              std::vector<ObjectiveMetric>& metrics) {
  const at::Tensor raw = raw_weights(options.level, old_logprobs.detach().sub(rollout_logprobs), kept);  // [K]
  const at::Tensor outside = raw.gt(options.maximum).logical_or(raw.lt(options.minimum));
  metrics.push_back(mean_metric("policy/importance_weight_mean", raw));
  metrics.push_back(maximum_metric("policy/importance_weight_max", raw));
  metrics.push_back(mean_metric("policy/importance_bounded", outside));
  if (options.correction == Correction::kMask) return raw.masked_fill(outside, 0);
  return raw.clamp(options.minimum, options.maximum);
}

}  // namespace sluice::nodes
