#pragma once

#include <string>

#include "base/numbers/exact_sum.h"
#include "engine/contract/state.h"

namespace sluice::nodes {

/// Mean and spread of all numbers seen so far, over all processes of a run (Welford 1962; merged as in Chan et al. 1979).
class RunningMoments {
 public:
  /// Takes in the numbers of an iteration, of all ranks.
  void absorb(const ExactMoments& numbers);

  /// As values NAME_count, NAME_mean and NAME_squares.
  void save(const std::string& name, engine::StateWriter& state) const;
  void load(const std::string& name, const engine::StateReader& state);

  double count() const { return count_; }
  double mean() const { return mean_; }

  /// The sample standard deviation (n - 1); 0 for fewer than two numbers.
  double deviation() const;

 private:
  double count_ = 0;
  double mean_ = 0;
  double squares_ = 0;  // sum of squared distances from the mean
};

}  // namespace sluice::nodes
