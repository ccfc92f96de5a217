#include "engine/observe/undisturbed_line.h"

#include <algorithm>
#include <cmath>

#include "engine/observe/least_squares.h"

namespace sluice::engine {
namespace {

constexpr int kClassesAnOctave = 2;
constexpr int kNothing = -1;        // the class of size 0
constexpr double kShortest = 1e-3;  // times below count as this where they are divided by

int class_of(double size) { return size < 1 ? kNothing : static_cast<int>(std::floor(kClassesAnOctave * std::log2(size))); }

}  // namespace

void UndisturbedLine::add(double size, double time) {
  Class& of_size = classes_[class_of(size)];
  if (of_size.count++ == 0 || time * std::max(1.0, of_size.size) < of_size.time * std::max(1.0, size))
    of_size.size = size, of_size.time = time;
  ++count_;
  size_ += size;
  time_ += time;
}

// Deviations count in relation to the time, as contention lengthens long work by more.
UndisturbedLine::Line UndisturbedLine::fit() const {
  LeastSquares<2> shortest;
  for (const auto& [number, of_size] : classes_) {
    const double weight = 1 / std::max(kShortest, of_size.time);
    shortest.add({weight, weight * of_size.size}, weight * of_size.time, of_size.count);
  }
  const auto [fixed, per_unit] = shortest.fit({0, 1});
  const double told = fixed * static_cast<double>(count_) + per_unit * size_;
  const double scale = told > 0 ? time_ / told : 0;
  return {.fixed = fixed * scale, .per_unit = per_unit * scale};
}

}  // namespace sluice::engine
