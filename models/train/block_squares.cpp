#include "models/train/block_squares.h"

#include <algorithm>

#include "models/kernels/adamw_kernel.h"
#include "models/kernels/parallel.h"

namespace sluice::models {

void BlockSquares::set(int64_t begin, std::span<const float> block) {
  sums_[static_cast<size_t>(begin / kFloatsOfABlock)] = sum_of_squares(block.data(), std::ssize(block));
}

void BlockSquares::set_all(const float* values, int64_t count) {
  parallel_ranges(std::ssize(sums_), 4, [&](int64_t first, int64_t end) {
    for (int64_t block = first; block < end; ++block) {
      const int64_t begin = block * kFloatsOfABlock;
      set(begin, {values + begin, static_cast<size_t>(std::min(kFloatsOfABlock, count - begin))});
    }
  });
}

double BlockSquares::total() const {
  double total = 0;
  for (const double sum : sums_) total += sum;
  return total;
}

}  // namespace sluice::models
