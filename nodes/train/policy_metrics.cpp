#include "nodes/train/policy_metrics.h"

#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

double total(const at::Tensor& x) { return x.to(at::kDouble).sum().item().toDouble(); }

void add_to(ExactMoments& moments, const at::Tensor& x) {
  const at::Tensor wide = x.to(at::kDouble);
  moments.weight.add(static_cast<double>(x.numel()));
  moments.sum.add(total(wide));
  moments.squares.add(total(wide.square()));
}

}  // namespace

void PolicyMetrics::add_sampled(const at::Tensor& logprobs, const at::Tensor& rollout_logprobs) {
  const auto count = static_cast<double>(logprobs.numel());
  if (count == 0) return;
  const at::Tensor log_ratio = logprobs.sub(rollout_logprobs), distance = log_ratio.abs();
  metrics_.mean("policy/logprob_difference_mean", total(distance) / count, count);
  metrics_.maximum("policy/logprob_difference_max", distance.max().item().toDouble());
  const at::Tensor ratio = exp_log_ratio(log_ratio.to(at::kDouble));
  add_to(totals_.mine(kRatios), ratio);
}

void PolicyMetrics::add_reference(const at::Tensor& logprobs, const at::Tensor& reference_logprobs) {
  const auto count = static_cast<double>(logprobs.numel());
  if (count == 0) return;
  const at::Tensor k1 = logprobs.sub(reference_logprobs).to(at::kDouble);
  metrics_.mean("reference/kl_mean", total(k1) / count, count);
  metrics_.mean("reference/kl_k2_mean", total(k1.square()) / 2 / count, count);
  metrics_.mean("reference/kl_k3_mean", total(exp_log_ratio(k1.neg()).sub(1).add(k1)) / count, count);
}

void PolicyMetrics::add_entropy(const at::Tensor& entropy) {
  const auto count = static_cast<double>(entropy.numel());
  metrics_.mean("policy/entropy_mean", total(entropy) / count, count);
}

void PolicyMetrics::add_values(const at::Tensor& values, const at::Tensor& returns) {
  const at::Tensor wide_returns = returns.to(at::kDouble);
  add_to(totals_.mine(kReturns), wide_returns);
  add_to(totals_.mine(kErrors), wide_returns.sub(values.to(at::kDouble)));
}

void PolicyMetrics::record_totals() {
  const ExactMoments& ratios = totals_.of_all(kRatios);
  if (ratios.count() > 0) {
    const double sum = ratios.sum.value();
    metrics_.value("policy/effective_sample_size", sum * sum / (ratios.count() * ratios.squares.value()));
  }
  const double returns = totals_.of_all(kReturns).squared_deviations();
  if (returns > 0) metrics_.value("value/explained_variance", 1 - totals_.of_all(kErrors).squared_deviations() / returns);
}

}  // namespace sluice::nodes
