#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "base/numbers/float_range.h"

namespace sluice::models {

/// Neighbouring numbers of a flat buffer, as a view of it or of a copy. A value.
struct Stretch {
  FloatRange range;
  at::Tensor values;  // [range.size()]
};

/// The stretches of a buffer that is there as a whole.
inline std::vector<Stretch> stretches_of(const at::Tensor& buffer, const std::vector<FloatRange>& ranges) {
  std::vector<Stretch> stretches;
  for (const FloatRange& range : ranges) stretches.push_back({range, buffer.narrow(0, range.begin, range.size())});
  return stretches;
}

/// Of a buffer of which only these ranges are there, back to back.
inline std::vector<Stretch> packed_stretches(const at::Tensor& packed, const std::vector<FloatRange>& ranges) {
  std::vector<Stretch> stretches;
  int64_t next = 0;
  for (const FloatRange& range : ranges) {
    stretches.push_back({range, packed.narrow(0, next, range.size())});
    next += range.size();
  }
  return stretches;
}

}  // namespace sluice::models
