#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace sluice::bench {

inline constexpr size_t kStages = 4;

/// What each micro-batch takes on each stage, in ms.
using Durations = std::vector<std::array<double, kStages>>;

/// The shortest time in which the stages, one machine each and in order, can be done with all micro-batches when at most
/// `in_flight` of them are between the beginning of the first stage and the end of the last: stage s ends micro-batch i at
///   end[i][s] = max(end[i-1][s], end[i][s-1], for the first stage end[i-in_flight][last]) + duration[i][s].
/// Nothing that keeps the order of the micro-batches can be faster.
double makespan(const Durations& durations, size_t in_flight);

}  // namespace sluice::bench
