#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// The course of a number over the iterations of a run: a learning rate, or a number of a node that is scheduled.
struct ScheduleCurve {
  struct Point {
    int64_t iteration = 0;
    double value = 0;
  };

  std::string name;           // "learning rate of actor", "train.objective.kl_coefficient"
  std::string text;           // how it goes, for people; empty: it never changes
  std::vector<Point> points;  // evenly spaced, from the first iteration to the last
  double lowest = 0;          // of all iterations
  double highest = 0;         // likewise
};

/// All of a plan, each with at most `points` points, at least 2: every iteration where these suffice. Learning rates first.
std::vector<ScheduleCurve> schedule_curves(const Plan& plan, int64_t points);

}  // namespace sluice::engine
