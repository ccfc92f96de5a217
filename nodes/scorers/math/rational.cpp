#include "nodes/scorers/math/rational.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/error.h"

namespace sluice::nodes {
namespace {

constexpr uint64_t kBase = 1'000'000'000;
constexpr size_t kDigits = 9;  // of a limb

}  // namespace

Natural::Natural(uint32_t value) {
  for (uint64_t rest = value; rest > 0; rest /= kBase) limbs_.push_back(static_cast<uint32_t>(rest % kBase));
}

Natural::Natural(std::string_view digits) {
  for (size_t end = digits.size(); end > 0;) {
    const size_t begin = end - std::min(end, kDigits);
    uint32_t limb = 0;
    std::from_chars(digits.data() + begin, digits.data() + end, limb);
    limbs_.push_back(limb);
    end = begin;
  }
  drop_leading_zeros();
}

Natural Natural::power_of_ten(size_t exponent) { return Natural("1" + std::string(exponent, '0')); }

void Natural::drop_leading_zeros() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

Natural operator+(const Natural& a, const Natural& b) {
  Natural sum;
  uint64_t carry = 0;
  for (size_t i = 0; i < std::max(a.limbs_.size(), b.limbs_.size()) || carry > 0; ++i) {
    if (i < a.limbs_.size()) carry += a.limbs_[i];
    if (i < b.limbs_.size()) carry += b.limbs_[i];
    sum.limbs_.push_back(static_cast<uint32_t>(carry % kBase));
    carry /= kBase;
  }
  return sum;
}

Natural operator-(const Natural& a, const Natural& b) {
  SLUICE_CHECK(a >= b, "a natural number would be negative");
  Natural difference = a;
  uint64_t borrow = 0;
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    const uint64_t less = borrow + (i < b.limbs_.size() ? b.limbs_[i] : 0);
    borrow = a.limbs_[i] < less;
    difference.limbs_[i] = static_cast<uint32_t>(a.limbs_[i] + borrow * kBase - less);
  }
  difference.drop_leading_zeros();
  return difference;
}

Natural operator*(const Natural& a, const Natural& b) {
  Natural product;
  product.limbs_.assign(a.limbs_.size() + b.limbs_.size(), 0);
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.limbs_.size() || carry > 0; ++j) {
      carry += product.limbs_[i + j] + (j < b.limbs_.size() ? uint64_t{a.limbs_[i]} * b.limbs_[j] : 0);
      product.limbs_[i + j] = static_cast<uint32_t>(carry % kBase);
      carry /= kBase;
    }
  }
  product.drop_leading_zeros();
  return product;
}

// As on paper: of each digit on its way the divisor is taken away as often as it fits.
Natural operator%(const Natural& a, const Natural& b) {
  SLUICE_CHECK(!b.is_zero(), "division by zero");
  Natural rest;
  for (size_t limb = a.limbs_.size(); limb-- > 0;) {
    for (uint64_t power = kBase / 10; power > 0; power /= 10) {
      rest = rest * Natural(10) + Natural(static_cast<uint32_t>(a.limbs_[limb] / power % 10));
      while (rest >= b) rest = rest - b;
    }
  }
  return rest;
}

std::strong_ordering operator<=>(const Natural& a, const Natural& b) {
  if (a.limbs_.size() != b.limbs_.size()) return a.limbs_.size() <=> b.limbs_.size();
  return std::lexicographical_compare_three_way(a.limbs_.rbegin(), a.limbs_.rend(), b.limbs_.rbegin(), b.limbs_.rend());
}

Rational Rational::decimal(std::string_view digits, int64_t scale) {
  const Natural shift = Natural::power_of_ten(static_cast<size_t>(scale < 0 ? -scale : scale));
  if (scale < 0) return {.above = Natural(digits) * shift};
  return {.above = Natural(digits), .below = shift};
}

Rational operator+(const Rational& a, const Rational& b) {
  const Natural left = a.above * b.below, right = b.above * a.below;
  const Natural below = a.below * b.below;
  if (a.negative == b.negative) return {a.negative, left + right, below};
  return left >= right ? Rational{a.negative, left - right, below} : Rational{b.negative, right - left, below};
}

Rational operator-(const Rational& a, const Rational& b) { return a + -b; }

Rational operator*(const Rational& a, const Rational& b) {
  return {a.negative != b.negative, a.above * b.above, a.below * b.below};
}

Rational operator/(const Rational& a, const Rational& b) {
  SLUICE_CHECK(!b.above.is_zero(), "division by zero");
  return {a.negative != b.negative, a.above * b.below, a.below * b.above};
}

std::strong_ordering operator<=>(const Rational& a, const Rational& b) {
  const Rational difference = a - b;
  if (difference.above.is_zero()) return std::strong_ordering::equal;
  return difference.negative ? std::strong_ordering::less : std::strong_ordering::greater;
}

bool is_multiple(const Rational& number, const Rational& divisor) {
  SLUICE_CHECK(!divisor.above.is_zero(), "division by zero");
  return ((number.above * divisor.below) % (number.below * divisor.above)).is_zero();
}

bool operator==(const Rational& a, const Rational& b) { return (a <=> b) == std::strong_ordering::equal; }

}  // namespace sluice::nodes
