#include "nodes/statistics/moments.h"

#include <algorithm>

namespace sluice::nodes {

Moments moments_of(std::span<const double> values, Variance variance) {
  if (values.empty()) return {};
  const auto is_first = [&](double value) { return value == values.front(); };
  if (std::ranges::all_of(values, is_first)) return {values.front(), 0};  // the quotient of sum and count may be next to it
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (variance == Variance::kBiased) return {mean, squares / count};
  return {mean, count > 1 ? squares / (count - 1) : 0};
}

Moments moments_of(const ExactMoments& sums, Variance variance) {
  const double divisor = variance == Variance::kBessel ? sums.count() - 1 : sums.count();
  return {sums.mean(), divisor > 0 ? sums.squared_deviations() / divisor : 0};
}

}  // namespace sluice::nodes
