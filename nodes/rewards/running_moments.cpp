#include "nodes/rewards/running_moments.h"

#include <cmath>

namespace sluice::nodes {

void RunningMoments::absorb(const ExactMoments& numbers) {
  const double count = numbers.count(), mean = numbers.mean();
  if (count == 0) return;

  const double all = count_ + count, step = mean - mean_;
  squares_ += numbers.squared_deviations() + step * step * count_ * count / all;
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
