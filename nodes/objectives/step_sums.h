#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/numbers/exact_sum.h"

namespace sluice::nodes {

/// What an objective adds up in one look at a whole optimizer step. Exact, so that neither the order nor the pieces in which
/// samples come change a bit of it: moments of two numbers of an action, whichever the objective takes, and whole numbers (such
/// as the bins of a histogram) that are added place by place. The list of those may grow.
struct StepSums {
  std::array<ExactMoments, 2> moments;
  std::vector<int64_t> counts;
};

}  // namespace sluice::nodes
