#pragma once

#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/objectives/importance_correction.h"
#include "nodes/objectives/kept_actions.h"
#include "nodes/objectives/objective.h"
#include "nodes/objectives/rejection.h"
#include "nodes/statistics/kl_estimator.h"

namespace sluice::nodes {

/// What a loss is a mean over, always over the whole optimizer step.
enum class Aggregation {
  kTokenMean,    // over all actions
  kSampleMean,   // over the samples, of the mean over their actions
  kSequenceSum,  // over the samples, of the sum over their actions divided by sequence_constant
};

constexpr auto enum_names(Aggregation) {
  return std::array{std::pair{Aggregation::kTokenMean, "token_mean"}, std::pair{Aggregation::kSampleMean, "sample_mean"},
                    std::pair{Aggregation::kSequenceSum, "sequence_sum"}};
}

/// Which gradient the KL term has.
enum class KlGradient {
  kDirect,           // that of the estimate
  kStraightThrough,  // that of k2, whose expectation is the gradient of the divergence (Schulman 2020); the value is the
                     // estimate's
};

constexpr auto enum_names(KlGradient) {
  return std::array{std::pair{KlGradient::kDirect, "direct"}, std::pair{KlGradient::kStraightThrough, "straight_through"}};
}

/// What every policy objective has beside its own parameters, which derive from it:
///
///   aggregation = "token_mean"      # "sample_mean", "sequence_sum"
///   sequence_constant = 1           # of sequence_sum (Dr.GRPO: the longest response)
///   correction = "none"             # "truncate", "mask": importance weights for samples of other weights
///   correction_level = "token"      # "sequence", "geometric" (importance_correction.h)
///   correction_max = 2.0
///   correction_min = 0.0
///   rejection = "none"              # "token", "sequence_sum", "sequence_mean", "sequence_max": what is too far from the weights
///   rejection_estimator = "k3"      # that sampled teaches nothing (rejection.h); "k1", "k2", "abs"
///   rejection_max = 0.01            # required where something is rejected
///   rejection_min = -0.01           # -rejection_max by default
///   kl_coefficient = 0.0            # adds the divergence from reference_logprobs to the loss
///   kl_estimator = "k3"             # "k1", "k2", "abs"
///   kl_gradient = "direct"          # "straight_through"
///   kl_clamp_input = 20             # bounds of the log ratio and of the estimate; none by default
///   kl_clamp_output = 10
///   entropy_coefficient = 0.0       # a bonus for the entropy
///
/// loss of an action = importance weight * surrogate + kl_coefficient * KL - entropy_coefficient * entropy. The mask weighs it.
/// The first term of a rejected action is 0; like one of weight 0 it still counts in the mean.
struct PolicyLossParams {
  Aggregation aggregation = Aggregation::kTokenMean;
  double sequence_constant = 1;
  Correction correction = Correction::kNone;
  CorrectionLevel correction_level = CorrectionLevel::kToken;
  double correction_max = 2;
  double correction_min = 0;
  Rejection rejection = Rejection::kNone;
  KlEstimator rejection_estimator = KlEstimator::kK3;
  std::optional<double> rejection_max;
  std::optional<double> rejection_min;
  engine::ScheduledNumber kl_coefficient = 0;
  KlEstimator kl_estimator = KlEstimator::kK3;
  KlGradient kl_gradient = KlGradient::kDirect;
  std::optional<double> kl_clamp_input;
  std::optional<double> kl_clamp_output;
  engine::ScheduledNumber entropy_coefficient = 0;
};

/// Reports what has no effect or contradicts itself among the shared parameters.
void check_policy_loss(const PolicyLossParams& params, engine::Findings& findings);

/// Declares the shared parameters and metrics.
template <class P>
void describe_policy_loss(engine::Contract<P>& c);

/// The entries of the actions that count, [K] each; `old_logprobs` is defined where the objective needs it.
struct PolicyTerms {
  at::Tensor logprobs;      // carries the gradient
  at::Tensor old_logprobs;  // constant
  at::Tensor advantages;    // constant
  const KeptActions& kept;
  int64_t iteration = 0;  // of the run
  at::Tensor draws;       // int64; defined where the objective needs them
  const std::vector<double>& step;

  at::Tensor log_ratio() const { return logprobs.sub(old_logprobs); }  // [K]
};

/// A surrogate for each action that counts, with its metrics.
struct Surrogate {
  at::Tensor losses;  // [K]
  std::vector<ObjectiveMetric> metrics;
};

/// A policy objective is a surrogate loss of each action; all else is the same for every one: mask, importance weights, KL and
/// entropy terms, aggregation. Sources of the aggregations: Yu et al. 2025 (DAPO, eq. 8), Shao et al. 2024 (GRPO, eq. 3), Liu et
/// al. 2025 (Dr.GRPO, section 3.2).
class PolicyObjective : public Objective {
 public:
  ObjectiveNeeds needs() const final;
  bool corrects_off_policy() const override { return takes_ratio() || loss_.correction != Correction::kNone; }
  bool counts_actions() const final { return loss_.aggregation == Aggregation::kTokenMean; }
  void look_at(int look, const ObjectiveInputs& inputs, StepSums& sums) const final;
  ObjectiveResult compute(const ObjectiveInputs& inputs) const final;

 protected:
  explicit PolicyObjective(const PolicyLossParams& loss) : loss_(loss) {}

  /// True if surrogate() reads old_logprobs.
  virtual bool takes_ratio() const { return true; }

  /// True if it reads draws.
  virtual bool takes_draws() const { return false; }

  /// Of an objective that looks at the step; at least one action.
  virtual void look(int /*look*/, const PolicyTerms& /*terms*/, StepSums& /*sums*/) const {}

  /// At least one action.
  virtual Surrogate surrogate(const PolicyTerms& terms) const = 0;

 private:
  at::Tensor corrected(at::Tensor losses, const ObjectiveInputs& inputs, const PolicyTerms& terms,
                       std::vector<ObjectiveMetric>& metrics) const;
  at::Tensor with_penalties(at::Tensor losses, const ObjectiveInputs& inputs, const PolicyTerms& terms,
                            std::vector<ObjectiveMetric>& metrics) const;
  ObjectiveResult aggregated(const at::Tensor& losses, const KeptActions& kept, std::vector<ObjectiveMetric> metrics) const;

  PolicyLossParams loss_;
};

template <class P>
void describe_policy_loss(engine::Contract<P>& c) {
  c.param("aggregation", &P::aggregation)
      .doc(
          "token_mean: mean over all actions, sample_mean: over the samples of their means, sequence_sum: over the samples of "
          "their sums, divided by sequence_constant");
  c.param("sequence_constant", &P::sequence_constant)
      .above(0)
      .doc("divides the sums of sequence_sum, such as the longest response");
  c.param("correction", &P::correction)
      .doc("weighs actions by old over rollout probability; truncate: bounded, mask: 0 outside of the bounds");
  c.param("correction_level", &P::correction_level)
      .doc("the weight is of each token, of the sequence (product), or its geometric mean");
  c.param("correction_max", &P::correction_max)
      .between(0, std::numeric_limits<double>::infinity())
      .above(0)
      .doc("upper bound of the weights; inf: none");
  c.param("correction_min", &P::correction_min).at_least(0).doc("lower bound of the weights");
  c.param("rejection", &P::rejection)
      .doc(
          "what is too far from the weights that sampled teaches nothing: each token, or whole sequences by sum, mean or "
          "largest");
  c.param("rejection_estimator", &P::rejection_estimator).doc("of that divergence; see token_rewards");
  c.param("rejection_max", &P::rejection_max).above(0).doc("largest estimate that is not rejected, in nats");
  c.param("rejection_min", &P::rejection_min).doc("smallest one, which k1 may fall below; unset: -rejection_max");
  c.param("kl_coefficient", &P::kl_coefficient)
      .at_least(0)
      .recorded_as("policy/kl_coefficient")
      .doc("weight of the divergence from the reference in the loss");
  c.param("kl_estimator", &P::kl_estimator).doc("of that divergence; see token_rewards");
  c.param("kl_gradient", &P::kl_gradient).doc("direct: of the estimate, straight_through: that of k2");
  c.param("kl_clamp_input", &P::kl_clamp_input).above(0).doc("bounds the log ratio to the reference symmetrically; unset: none");
  c.param("kl_clamp_output", &P::kl_clamp_output).above(0).doc("bounds the estimate symmetrically; unset: none");
  c.param("entropy_coefficient", &P::entropy_coefficient)
      .at_least(0)
      .recorded_as("policy/entropy_coefficient")
      .doc("weight of a bonus for the entropy of each action");
  c.metric("policy/ratio_mean", engine::Metric::kMean, "mean over the actions of new over old probability");
  c.metric("policy/ratio_max", engine::Metric::kMaximum, "largest such ratio");
  c.metric("policy/kl_mean", engine::Metric::kMean, "divergence of the trained weights from the old ones (k3)");
  c.metric("policy/importance_weight_mean", engine::Metric::kMean, "mean importance weight before its bounds");
  c.metric("policy/importance_weight_max", engine::Metric::kMaximum, "largest such weight");
  c.metric("policy/importance_bounded", engine::Metric::kMean, "part of the actions whose weight is outside of the bounds");
  c.metric("policy/rejection_estimate_mean", engine::Metric::kMean,
           "mean over the actions of what rejection_max bounds; with sequence_max of the actions' own estimates");
  c.metric("policy/rejection_estimate_max", engine::Metric::kMaximum, "largest such estimate");
  c.metric("policy/rejected", engine::Metric::kMean, "part of the actions that are rejected");
  c.metric("policy/kl_loss_mean", engine::Metric::kMean, "mean over the actions of the divergence that is in the loss");
  c.check([](const P& params, engine::Findings& findings) { check_policy_loss(params, findings); });
}

}  // namespace sluice::nodes
