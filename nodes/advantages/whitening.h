#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "engine/metrics.h"

namespace sluice::nodes {

/// Over what a column is brought to zero mean and unit variance.
enum class Whitening { kNone, kIteration };

constexpr auto enum_names(Whitening) {
  return std::array{std::pair{Whitening::kNone, "none"}, std::pair{Whitening::kIteration, "iteration"}};
}

/// x := (x - mean) / sqrt(variance + 1e-8) over all entries of `parts`, and over all processes of the run. The variance has
/// Bessel's correction, as in TRL, NeMo-RL and SkyRL. One entry alone becomes 0. A NaN anywhere makes every entry NaN.
void whiten(const std::vector<std::span<float>>& parts, engine::Reducer& reducer);

}  // namespace sluice::nodes
