#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "nodes/objectives/kept_actions.h"
#include "nodes/objectives/objective.h"
#include "nodes/statistics/kl_estimator.h"

namespace sluice::nodes {

/// What is rejected by its divergence.
enum class Rejection {
  kNone,
  kToken,         // each action by its estimate
  kSequenceSum,   // whole samples by the sum over their actions
  kSequenceMean,  // by the mean
  kSequenceMax,   // by any action that is outside of the bounds
};

constexpr auto enum_names(Rejection) {
  return std::array{std::pair{Rejection::kNone, "none"}, std::pair{Rejection::kToken, "token"},
                    std::pair{Rejection::kSequenceSum, "sequence_sum"}, std::pair{Rejection::kSequenceMean, "sequence_mean"},
                    std::pair{Rejection::kSequenceMax, "sequence_max"}};
}

struct RejectionOptions {
  Rejection rejection = Rejection::kNone;
  KlEstimator estimator = KlEstimator::kK3;
  double minimum = 0;
  double maximum = 0;
};

/// Which of the kept actions are rejected, [K] boolean: those whose estimated divergence of the policy that the ratio is taken
/// from (proximal) from the one that sampled (behaviour) is outside of [minimum, maximum]. The estimates are those of the token
/// rewards (kl_estimator.h) with d = rollout_logprob - old_logprob (Liu et al. 2025, "When Speed Kills Stability"; `rollout_rs`
/// of verl). A NaN is not rejected, so that it is seen.
///
/// old_logprobs, rollout_logprobs [K]. Adds its metrics to `metrics`.
at::Tensor rejected_actions(const RejectionOptions& options, const at::Tensor& old_logprobs, const at::Tensor& rollout_logprobs,
                            const KeptActions& kept, std::vector<ObjectiveMetric>& metrics);

}  // namespace sluice::nodes
