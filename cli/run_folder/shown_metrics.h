#pragma once

#include <array>

/// Metrics that tell at a glance how a run does. What all displays take their names from.
namespace sluice::cli {

inline constexpr const char* kScoreMetric = "reward/score_mean";
inline constexpr std::array<const char*, 2> kLossMetrics{"policy/loss", "reward_model/loss"};  // where there is no score
inline constexpr const char* kKlMetric = "reference/kl_mean";

/// What is to improve, of the metrics that are there: the score, or a loss. Null: neither.
template <class IsThere>
const char* metric_to_improve(const IsThere& is_there) {
  if (is_there(kScoreMetric)) return kScoreMetric;
  for (const char* loss : kLossMetrics)
    if (is_there(loss)) return loss;
  return nullptr;
}

}  // namespace sluice::cli
