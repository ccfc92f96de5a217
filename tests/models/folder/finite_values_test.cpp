#include "models/folder/finite_values.h"

#include <ATen/ops/isfinite.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include <limits>

namespace sluice::models::finite_values_test {
namespace {

// Any bits of the type's width, among them many of NaN, of the infinities and of numbers below the smallest normal one.
at::Tensor any_bits(int64_t count, at::ScalarType type) {
  if (type == at::kFloat) return at::randint(-(int64_t{1} << 31), int64_t{1} << 31, {count}, at::kLong).to(at::kInt).view(type);
  return at::randint(-32768, 32768, {count}, at::kLong).to(at::kShort).view(type);
}

TEST(FiniteValues, AreCountedAsLibTorchDoes) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const int64_t count : {0, 1, 4095, 4096, 4097, 100'000}) {
      const at::Tensor values = any_bits(count, type);
      EXPECT_EQ(count_not_finite(values), count - at::isfinite(values).sum().item<int64_t>()) << type << ' ' << count;
    }
  }
}

TEST(FiniteValues, OneInTheLastBlockIsSeen) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    at::Tensor values = any_bits(10'000, at::kHalf).isfinite().to(type);  // ones and zeros
    EXPECT_EQ(count_not_finite(values), 0) << type;
    values[9'999] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(count_not_finite(values), 1) << type;
  }
}

}  // namespace
}  // namespace sluice::models::finite_values_test
