#include "nodes/objectives/vespo.h"

#include <ATen/ops/full_like.h>

#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

// [K] log of the kernel, so that neither power nor exponential overflows; log_ratio[K] of whole samples.
at::Tensor log_kernel(const at::Tensor& log_ratio, double k, double lambda) {
  return log_ratio.mul(k).add(exp_log_ratio(log_ratio).neg().add(1).mul(lambda));
}

}  // namespace

void Vespo::describe(engine::Contract<VespoParams>& c) {
  using P = VespoParams;
  c.type("vespo", "policy gradient weighed by a smooth kernel of the probability ratio of each sample");
  c.param("k_positive", &P::k_positive).at_least(0).doc("how fast samples fade that became unlikely, at positive advantages");
  c.param("lambda_positive", &P::lambda_positive).above(0).doc("how fast samples fade that became likely, likewise");
  c.param("k_negative", &P::k_negative).at_least(0).doc("as k_positive, at negative advantages");
  c.param("lambda_negative", &P::lambda_negative).above(0).doc("as lambda_positive, at negative advantages");
  describe_policy_loss(c);
  c.metric("policy/kernel_mean", engine::Metric::kMean, "mean over the actions of the kernel's weight");
}

Surrogate Vespo::surrogate(const PolicyTerms& terms) const {
  const at::Tensor of_sample = terms.kept.sum_by_sample(terms.log_ratio().detach());  // [S]
  const at::Tensor log_ratio = terms.kept.to_actions(of_sample);                      // [K]
  const at::Tensor kernel = log_kernel(log_ratio, params_.k_positive, params_.lambda_positive)
                                .where(terms.advantages.ge(0), log_kernel(log_ratio, params_.k_negative, params_.lambda_negative))
                                .exp();
  return {.losses = kernel.mul(terms.advantages).neg().mul(terms.logprobs),
          .metrics = {mean_metric("policy/kernel_mean", kernel)}};
}

}  // namespace sluice::nodes
