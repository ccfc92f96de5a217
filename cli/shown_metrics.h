#pragma once

#include <array>

/// Metrics that tell at a glance how a run does. What all displays take their names from.
namespace sluice::cli {

inline constexpr const char* kScoreMetric = "reward/score_mean";
inline constexpr std::array<const char*, 2> kLossMetrics{"policy/loss", "reward_model/loss"};  // where there is no score
inline constexpr const char* kKlMetric = "reference/kl_mean";

}  // namespace sluice::cli
