#include "nodes/train/policy_metrics.h"

#include "nodes/objectives/log_ratio.h"

namespace sluice::nodes {

namespace {

double total(const at::Tensor& x) { return x.to(at::kDouble).sum().item().toDouble(); }

}  // namespace

void PolicyFigures::add_sampled(const at::Tensor& logprobs, const at::Tensor& rollout_logprobs) {
  const auto count = static_cast<double>(logprobs.numel());
  if (count == 0) return;
  const at::Tensor log_ratio = logprobs.sub(rollout_logprobs), distance = log_ratio.abs();
  metrics_.mean("policy/logprob_difference_mean", total(distance) / count, count);
  metrics_.maximum("policy/logprob_difference_max", distance.max().item().toDouble());
  const at::Tensor ratio = exp_log_ratio(log_ratio.to(at::kDouble));
  sampled_.count += count;
  sampled_.sum += total(ratio);
  sampled_.squares += total(ratio.square());
}

void PolicyFigures::add_reference(const at::Tensor& logprobs, const at::Tensor& reference_logprobs) {
  const auto count = static_cast<double>(logprobs.numel());
  if (count == 0) return;
  const at::Tensor k1 = logprobs.sub(reference_logprobs).to(at::kDouble);
  metrics_.mean("reference/kl_mean", total(k1) / count, count);
  metrics_.mean("reference/kl_k2_mean", total(k1.square()) / 2 / count, count);
  metrics_.mean("reference/kl_k3_mean", total(exp_log_ratio(k1.neg()).sub(1).add(k1)) / count, count);
}

void PolicyFigures::add_entropy(const at::Tensor& entropy) {
  const auto count = static_cast<double>(entropy.numel());
  metrics_.mean("policy/entropy_mean", total(entropy) / count, count);
}

void PolicyFigures::add_values(const at::Tensor& values, const at::Tensor& returns) {
  const at::Tensor wide_returns = returns.to(at::kDouble), errors = wide_returns.sub(values.to(at::kDouble));
  explained_.count += static_cast<double>(values.numel());
  explained_.returns += total(wide_returns);
  explained_.returns_squared += total(wide_returns.square());
  explained_.errors += total(errors);
  explained_.errors_squared += total(errors.square());
}

void PolicyFigures::end_iteration() {
  std::array<double, 8> sums{sampled_.count,     sampled_.sum,
                             sampled_.squares,   explained_.count,
                             explained_.returns, explained_.returns_squared,
                             explained_.errors,  explained_.errors_squared};
  reducer_.sum(sums);
  const auto [ratios, ratio_sum, ratio_squares, count, returns, returns_squared, errors, errors_squared] = sums;
  if (ratios > 0) metrics_.value("policy/effective_sample_size", ratio_sum * ratio_sum / (ratios * ratio_squares));
  const double return_variance = returns_squared - returns * returns / count;  // times count; NaN without actions
  const double error_variance = errors_squared - errors * errors / count;
  if (return_variance > 0) metrics_.value("value/explained_variance", 1 - error_variance / return_variance);
}

}  // namespace sluice::nodes
