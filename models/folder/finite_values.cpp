#include "models/folder/finite_values.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace sluice::models {
namespace {

// NaN and the infinities are those with all bits of the exponent.
template <class Bits>
int64_t count_with(const Bits* values, int64_t count, Bits exponent) {
  constexpr int64_t kBlock = 4096;  // mostly there is none: a block without is passed by a loop that the compiler makes wide
  int64_t found = 0;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const Bits* block = values + begin;
    const int64_t size = std::min(kBlock, count - begin);
    Bits any = 0;
    for (int64_t i = 0; i < size; ++i) any |= static_cast<Bits>((block[i] & exponent) == exponent);
    if (any == 0) continue;
    for (int64_t i = 0; i < size; ++i) found += (block[i] & exponent) == exponent ? 1 : 0;
  }
  return found;
}

}  // namespace

int64_t count_not_finite(const at::Tensor& values) {
  SLUICE_CHECK(values.is_contiguous() && values.is_cpu(), "values that are counted are dense and on the host");
  const void* data = values.const_data_ptr();
  switch (values.scalar_type()) {
    case at::kFloat:
      return count_with(static_cast<const uint32_t*>(data), values.numel(), uint32_t{0x7F800000});
    case at::kBFloat16:
      return count_with(static_cast<const uint16_t*>(data), values.numel(), uint16_t{0x7F80});
    case at::kHalf:
      return count_with(static_cast<const uint16_t*>(data), values.numel(), uint16_t{0x7C00});
    default:
      SLUICE_CHECK(false, "values that are counted are floating-point numbers of at most four bytes");
  }
  return 0;
}

}  // namespace sluice::models
