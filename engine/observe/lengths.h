#pragma once

#include <cstdint>
#include <map>

namespace sluice::engine {

/// How often each length occurred. Lengths below 128 are counted exactly, longer ones in 64 steps an octave (to 1.6 %), so that
/// the memory is bounded whatever the lengths are. A plain value.
class LengthHistogram {
 public:
  void add(int64_t length, int64_t count = 1);

  int64_t total() const { return total_; }
  double mean() const;

  /// The length at the share `u` of all, 0 <= u < 1, shortest first: drawing u uniformly draws a length. Not empty.
  int64_t at(double u) const;

  const std::map<int64_t, int64_t>& counts() const { return counts_; }  // by length

  bool operator==(const LengthHistogram&) const = default;

 private:
  std::map<int64_t, int64_t> counts_;
  int64_t total_ = 0;
};

}  // namespace sluice::engine
