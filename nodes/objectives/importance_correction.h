#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <utility>
#include <vector>

#include "nodes/objectives/kept_actions.h"
#include "nodes/objectives/objective.h"

namespace sluice::nodes {

/// What happens to an importance weight outside of [correction_min, correction_max].
enum class Correction {
  kNone,      // no weights
  kTruncate,  // it is moved to the bound
  kMask,      // it becomes 0: the action teaches nothing, and still counts in the mean
};

constexpr auto enum_names(Correction) {
  return std::array{std::pair{Correction::kNone, "none"}, std::pair{Correction::kTruncate, "truncate"},
                    std::pair{Correction::kMask, "mask"}};
}

/// What a weight is of.
enum class CorrectionLevel {
  kToken,      // each action: exp(old - rollout)
  kSequence,   // all actions of a sample: the product of theirs
  kGeometric,  // likewise: the geometric mean of theirs
};

constexpr auto enum_names(CorrectionLevel) {
  return std::array{std::pair{CorrectionLevel::kToken, "token"}, std::pair{CorrectionLevel::kSequence, "sequence"},
                    std::pair{CorrectionLevel::kGeometric, "geometric"}};
}

struct CorrectionOptions {
  Correction correction = Correction::kNone;
  CorrectionLevel level = CorrectionLevel::kToken;
  double minimum = 0;
  double maximum = 2;
};

/// Importance weights of the kept actions, from the policy that sampled (behaviour) to the one that the ratio is taken from
/// (proximal): truncated importance sampling (Yao et al. 2025), its masked form (IcePop, Ling team 2025), and with both policies
/// apart decoupled PPO (Hilton et al. 2022; AReaL, Fu et al. 2025, eq. 5). Constants: no gradient goes through them.
///
/// old_logprobs, rollout_logprobs [K]; returns [K]. Adds their metrics to `metrics`.
at::Tensor importance_weights(const CorrectionOptions& options, const at::Tensor& old_logprobs,
                              const at::Tensor& rollout_logprobs, const KeptActions& kept, std::vector<ObjectiveMetric>& metrics);

}  // namespace sluice::nodes
