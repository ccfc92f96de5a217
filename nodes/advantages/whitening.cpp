#include "nodes/advantages/whitening.h"

#include <cmath>

namespace sluice::nodes {
namespace {

constexpr double kEpsilon = 1e-8;  // keeps equal entries at 0 instead of 0/0

}  // namespace

// Two passes, because the difference of large sums of squares would lose the variance of values far from 0.
void whiten(const std::vector<std::span<float>>& parts, engine::Reducer& reducer) {
  std::array<double, 2> totals{};  // count, sum
  for (const auto part : parts) {
    totals[0] += static_cast<double>(part.size());
    for (const float x : part) totals[1] += x;
  }
  reducer.sum(totals);
  const auto [count, sum] = totals;
  const double mean = sum / count;

  std::array<double, 1> squares{};
  for (const auto part : parts) {
    for (const float x : part) squares[0] += (x - mean) * (x - mean);
  }
  reducer.sum(squares);
  const double variance = count > 1 ? squares[0] / (count - 1) : 0;

  const double scale = 1 / std::sqrt(variance + kEpsilon);
  for (const auto part : parts) {
    for (float& x : part) x = count > 1 ? static_cast<float>((x - mean) * scale) : x - static_cast<float>(mean);
  }
}

}  // namespace sluice::nodes
