#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/numbers/float_range.h"

namespace sluice::models {

/// The sums of the squares of a flat buffer, one for each block of it (base/numbers/float_range.h), in double precision: the
/// square of its norm is their sum in this order, whoever has added which block. A value; blocks may be set by several threads at
/// once.
class BlockSquares {
 public:
  /// Of a buffer of `count` floats.
  explicit BlockSquares(int64_t count) : sums_(static_cast<size_t>(blocks_of(count))) {}

  static int64_t blocks_of(int64_t count) { return (count + kFloatsOfABlock - 1) / kFloatsOfABlock; }

  /// The block that begins at this float of the buffer.
  void set(int64_t begin, std::span<const float> block);

  /// All blocks, on all threads that loops have.
  void set_all(const float* values, int64_t count);

  double total() const;

  /// Of which each block has one.
  std::span<double> sums() { return sums_; }

 private:
  std::vector<double> sums_;
};

}  // namespace sluice::models
