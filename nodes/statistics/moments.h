#pragma once

#include <array>
#include <span>
#include <utility>

#include "base/numbers/exact_sum.h"

namespace sluice::nodes {

/// What a sum of squared deviations is divided by.
enum class Variance {
  kBessel,  // n - 1, as torch.std does
  kBiased,  // n
};

constexpr auto enum_names(Variance) {
  return std::array{std::pair{Variance::kBessel, "bessel"}, std::pair{Variance::kBiased, "biased"}};
}

struct Moments {
  double mean = 0;
  double variance = 0;
};

/// Of a few values; all 0 of none, and the variance of one value is 0. The mean of equal values is exactly theirs, and their
/// variance exactly 0.
Moments moments_of(std::span<const double> values, Variance variance);

/// Of exact sums; the variance is 0 where its divisor is not above 0.
Moments moments_of(const ExactMoments& sums, Variance variance);

}  // namespace sluice::nodes
