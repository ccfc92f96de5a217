#include "engine/observe/least_squares.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace sluice::engine {
namespace {

// A weak pull towards `expected`, weaker the more data there are.
constexpr double kPull = 1e-5, kPullOfFew = 0.1;

// Solves a * b = y restricted to the features in `chosen`, by elimination with pivoting; false when they are not independent.
template <size_t N, class Matrix, class Vector>
bool solve(Matrix a, Vector y, unsigned chosen, Vector& b) {
  for (size_t i = 0; i < N; ++i) {
    if ((chosen >> i & 1) != 0) continue;
    a[i] = {};
    for (size_t j = 0; j < N; ++j) a[j][i] = 0;
    a[i][i] = 1;
    y[i] = 0;
  }
  for (size_t column = 0; column < N; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < N; ++row) {
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    }
    if (std::abs(a[pivot][column]) < 1e-12) return false;
    std::swap(a[pivot], a[column]);
    std::swap(y[pivot], y[column]);
    for (size_t row = column + 1; row < N; ++row) {
      const double factor = a[row][column] / a[column][column];
      for (size_t k = column; k < N; ++k) a[row][k] -= factor * a[column][k];
      y[row] -= factor * y[column];
    }
  }
  for (size_t row = N; row-- > 0;) {
    double value = y[row];
    for (size_t k = row + 1; k < N; ++k) value -= a[row][k] * b[k];
    b[row] = value / a[row][row];
  }
  return true;
}

}  // namespace

template <size_t N>
void LeastSquares<N>::add(const Vector& x, double y, int64_t times) {
  const auto n = static_cast<double>(times);
  count_ += times;
  for (size_t i = 0; i < N; ++i) {
    for (size_t j = 0; j < N; ++j) xx_[i][j] += n * x[i] * x[j];
    xy_[i] += n * x[i] * y;
    x_[i] += n * x[i];
  }
  y_ += n * y;
}

// Features are scaled to a mean square of 1 first, so that the pull is alike for all. N is small: every set of features that may
// be above 0 is tried.
template <size_t N>
typename LeastSquares<N>::Vector LeastSquares<N>::fit(const Vector& expected) const {
  Vector scale{}, best{};
  double expected_sum = 0;
  const auto n = static_cast<double>(count_);
  for (size_t i = 0; i < N; ++i) {
    scale[i] = std::sqrt(xx_[i][i] / std::max(n, 1.0));
    expected_sum += expected[i] * x_[i];
  }
  if (count_ == 0 || y_ <= 0) return best;

  Matrix a{};
  Vector rhs{};
  const double pull = kPull + kPullOfFew / n / n;
  for (size_t i = 0; i < N; ++i) {
    if (scale[i] == 0) continue;
    for (size_t j = 0; j < N; ++j) a[i][j] = scale[j] == 0 ? 0 : xx_[i][j] / (n * scale[i] * scale[j]);
    a[i][i] += pull;
    const double target = expected_sum > 0 ? expected[i] * y_ / expected_sum : 0;
    rhs[i] = xy_[i] / (n * scale[i]) + pull * target * scale[i];
  }

  double least = std::numeric_limits<double>::infinity();
  for (unsigned chosen = 1; chosen < 1U << N; ++chosen) {
    Vector b{};
    bool possible = true;
    for (size_t i = 0; i < N; ++i) possible = possible && ((chosen >> i & 1) == 0 || scale[i] > 0);
    if (!possible || !solve<N>(a, rhs, chosen, b) || std::ranges::any_of(b, [](double value) { return value < 0; })) continue;
    double rest = 0;  // up to a constant
    for (size_t i = 0; i < N; ++i) {
      rest -= 2 * b[i] * rhs[i];
      for (size_t j = 0; j < N; ++j) rest += b[i] * a[i][j] * b[j];
    }
    if (rest < least) least = rest, best = b;
  }
  double told = 0;
  for (size_t i = 0; i < N; ++i) {
    best[i] = scale[i] == 0 ? 0 : best[i] / scale[i];
    told += best[i] * x_[i];
  }
  for (double& value : best) value = told > 0 ? value * (y_ / told) : 0;
  return best;
}

template class LeastSquares<2>;
template class LeastSquares<3>;

}  // namespace sluice::engine
