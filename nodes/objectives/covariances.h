#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "nodes/objectives/policy_loss.h"

namespace sluice::nodes {

/// How much each action has to do with the covariance of advantage and log-probability over an optimizer step, by which the
/// entropy of the policy falls (Cui et al. 2025, "The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models",
/// eq. 10): (logprob - mean logprob) (A - mean A), with the means over all actions of the step by their weights. Takes one look.
struct StepMeans {
  static constexpr size_t kNumbers = 3;  // of what was found: the three, first

  double advantage = 0;
  double logprob = 0;
  double actions = 0;  // that count, each as one

  static void look(const PolicyTerms& terms, StepSums& sums);
  static std::vector<double> find(const StepSums& of_all);
  static StepMeans from(const std::vector<double>& found);

  at::Tensor covariances(const PolicyTerms& terms) const;  // [K] float32, constant

  /// How many actions a share of those of the step are, rounded down, but one at least.
  double part(double share) const;
};

}  // namespace sluice::nodes
