#pragma once

#include <ATen/core/Tensor.h>

#include "engine/contract/contract.h"
#include "engine/contract/world/metrics.h"
#include "engine/contract/world/totals.h"

namespace sluice::nodes {

/// What tells whether a policy is trained soundly: metrics over the actions of an iteration, or of the first of its mini-batches,
/// under the weights before its first optimizer step. Means are over all of these that count, whatever the micro-batches were.
/// Used by one thread.
class PolicyMetrics {
 public:
  PolicyMetrics(engine::MetricsRecorder& metrics, engine::Totals& totals) : metrics_(metrics), totals_(totals) {}

  /// Declares the metrics.
  template <class P>
  static void describe(engine::Contract<P>& c);

  /// How far the weights that train are from those that sampled, both [A] and constant: the distance of the log-probabilities and
  /// the effective sample size of the ratios. On-policy it is rounding only.
  void add_sampled(const at::Tensor& logprobs, const at::Tensor& rollout_logprobs);

  /// The divergence from a reference, by three estimators (Schulman 2020). Both [A] and constant.
  void add_reference(const at::Tensor& logprobs, const at::Tensor& reference_logprobs);

  /// Of the distribution that each action was drawn from, [A] constant, in nats.
  void add_entropy(const at::Tensor& entropy);

  /// What the critic said and what came of it, both [A] and constant.
  void add_values(const at::Tensor& values, const at::Tensor& returns);

  /// Records what follows from sums over all ranks, once these can be read.
  void record_totals();

 private:
  static constexpr const char *kRatios = "ratios", *kReturns = "returns", *kErrors = "errors";

  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
};

template <class P>
void PolicyMetrics::describe(engine::Contract<P>& c) {
  for (const char* name : {kRatios, kReturns, kErrors}) c.total(name);
  c.metric("policy/logprob_difference_mean", engine::Metric::kMean,
           "of the first mini-batch, before its step: distance of an action's log-probability from the one it was sampled with");
  c.metric("policy/logprob_difference_max", engine::Metric::kMaximum, "the largest such distance");
  c.metric("policy/effective_sample_size", engine::Metric::kValue,
           "of the first mini-batch, before its step: (sum r)^2 / (n sum r^2) over the ratios r of training to sampling "
           "probability; 1: on-policy");
  c.metric("reference/kl_mean", engine::Metric::kMean,
           "of the first mini-batch, before its step: divergence from the reference, mean of log policy - log reference (k1)");
  c.metric("reference/kl_k2_mean", engine::Metric::kMean, "the same by half the square of that (k2)");
  c.metric("reference/kl_k3_mean", engine::Metric::kMean, "the same by the k3 estimator, which is never negative");
  c.metric("policy/entropy_mean", engine::Metric::kMean,
           "of the first mini-batch, before its step: entropy of the distribution that an action is drawn from, in nats");
  c.metric("value/explained_variance", engine::Metric::kValue,
           "of the first mini-batch, before its step: 1 - variance(return - value) / variance(return)");
}

}  // namespace sluice::nodes
