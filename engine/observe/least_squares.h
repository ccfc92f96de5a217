#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::engine {

/// Fits y = sum of b[j] * x[j], b >= 0, to observations that are only summed up: memory is constant. Meant for costs: what the
/// data do not tell apart (all x nearly alike) goes to the features that `expected` names, and b reproduces the sum of all y
/// exactly.
template <size_t N>
class LeastSquares {
 public:
  using Vector = std::array<double, N>;

  void add(const Vector& x, double y, int64_t times = 1);
  void clear() { *this = {}; }
  int64_t count() const { return count_; }

  /// `expected` [N] is 1 for features that the cost is taken to be proportional to where the data say nothing, else 0. Zeros
  /// without data.
  Vector fit(const Vector& expected) const;

 private:
  using Matrix = std::array<Vector, N>;

  int64_t count_ = 0;
  Matrix xx_{};
  Vector xy_{};
  Vector x_{};
  double y_ = 0;
};

extern template class LeastSquares<2>;
extern template class LeastSquares<3>;

}  // namespace sluice::engine
