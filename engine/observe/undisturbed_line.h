#pragma once

#include <cstdint>
#include <map>

namespace sluice::engine {

/// What work takes as a straight line over its size: fixed + per_unit * size. On a machine that does other things too, most of
/// what is measured is longer than necessary, and not equally for all sizes. So the line goes through the shortest times for
/// their size, and is then scaled to reproduce the sum of all. Memory is constant.
class UndisturbedLine {
 public:
  struct Line {
    double fixed = 0;
    double per_unit = 0;
  };

  /// `size` >= 0.
  void add(double size, double time);

  /// Neither part is negative. Where all sizes are alike the time is taken to be proportional to the size; zeros without data.
  Line fit() const;

  int64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0 : time_ / static_cast<double>(count_); }

 private:
  struct Class {  // of sizes: half an octave
    int64_t count = 0;
    double size = 0, time = 0;  // the shortest for its size
  };

  std::map<int, Class> classes_;
  int64_t count_ = 0;
  double size_ = 0, time_ = 0;  // sums
};

}  // namespace sluice::engine
