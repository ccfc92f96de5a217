#include "nodes/rewards/running_moments.h"

#include <array>
#include <cmath>

namespace sluice::nodes {

void RunningMoments::absorb(const std::vector<double>& numbers, engine::Reducer& reducer) {
  std::array<double, 2> sums{static_cast<double>(numbers.size()), 0};
  for (const double number : numbers) sums[1] += number;
  reducer.sum(sums);
  const double count = sums[0];
  const double mean = count > 0 ? sums[1] / count : 0;

  std::array<double, 1> squares{0};
  for (const double number : numbers) squares[0] += (number - mean) * (number - mean);
  reducer.sum(squares);
  if (count == 0) return;

  const double all = count_ + count, step = mean - mean_;
  squares_ += squares[0] + step * step * count_ * count / all;
  mean_ += step * count / all;
  count_ = all;
}

void RunningMoments::save(const std::string& name, engine::StateWriter& state) const {
  state.put(name + "_count", count_);
  state.put(name + "_mean", mean_);
  state.put(name + "_squares", squares_);
}

void RunningMoments::load(const std::string& name, const engine::StateReader& state) {
  count_ = state.number(name + "_count");
  mean_ = state.number(name + "_mean");
  squares_ = state.number(name + "_squares");
}

double RunningMoments::deviation() const { return count_ > 1 ? std::sqrt(squares_ / (count_ - 1)) : 0; }

}  // namespace sluice::nodes
