#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/numbers/float_range.h"

namespace sluice::models {

/// Sums of float32 numbers in memory that several processes have in common, to which each adds when it has something. An addend
/// is rounded to a multiple of 2^-32 once, and integers are added: so a sum has the same bits whoever comes first, and however
/// the addends are spread over the processes.
///
/// Of gradients: an addend is that of a pass, summed over its tokens, and the step divides the sum by their count. What is
/// rounded away is 2^-33 of a sum at most, far below what the epsilon of Adam (1e-8) leaves of a mean. Sums may reach 2^30;
/// beyond that, and where an addend is not finite, a block (base/numbers/float_range.h) is not finite as a whole, and the step is
/// refused.
///
/// Threads: add() from any, in all processes; all else while nobody adds. Failure: UserError where another process is
/// lost while it adds, or holds a block for a minute.
class FixedPointSums {
 public:
  /// What `floats` sums take: nearly 8 bytes each.
  static size_t bytes_for(int64_t floats);

  /// `memory`: of bytes_for(floats), zero before the first process sets it up, which one does, before any other uses it.
  FixedPointSums(std::shared_ptr<std::byte> memory, int64_t floats);
  void set_up();

  int64_t size() const { return floats_; }

  /// Adds values[range.size()] to the sums of the range, and makes them zero.
  void add(FloatRange range, float* values);

  /// Rounds the sums of a range, which lies in one block, to sums[range.size()].
  void take(FloatRange range, float* sums) const;

  /// What of a range of whole blocks other processes are given, which have no memory in common with these: [range.size()], in
  /// place. While nobody adds, until the next clear() of the range.
  int64_t* given(FloatRange range);

  /// Adds what they have given of it. While nobody else adds.
  void add_given(FloatRange range, const int64_t* sums);

  /// Sums of whole blocks become zero.
  void clear(FloatRange range);

 private:
  struct Block;

  Block& block(int64_t index) const;
  int64_t* sums() const { return reinterpret_cast<int64_t*>(memory_.get()); }
  void add_in_block(FloatRange range, float* values);

  const std::shared_ptr<std::byte> memory_;
  const int64_t floats_;
};

}  // namespace sluice::models
