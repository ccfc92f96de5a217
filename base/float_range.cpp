#include "base/float_range.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {
namespace {

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

FloatRange owned_floats(int64_t count, int rank, int ranks) {
  SLUICE_CHECK(0 <= rank && rank < ranks && count >= 0, "an owner that is none of the ranks");
  const int64_t most = divided_up(divided_up(count, kFloatsOfABlock), ranks) * kFloatsOfABlock;
  return {std::min(count, rank * most), std::min(count, (rank + 1) * most)};
}

}  // namespace sluice
