#pragma once

#include <cstdint>
#include <limits>

namespace sluice::engine {

// Sizes that a user writes are multiplied and added before anybody knows whether they are sensible: the results stop at the
// largest int64_t instead of wrapping around. No argument is negative.

inline int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

inline int64_t saturating_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// How many of size `by` it takes for `number`.
inline int64_t divided_up(int64_t number, int64_t by) { return number / by + (number % by > 0); }

}  // namespace sluice::engine
