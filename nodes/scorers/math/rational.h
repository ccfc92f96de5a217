#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::nodes {

/// A whole number from 0 of any size. A value type.
class Natural {
 public:
  Natural() = default;  // 0
  explicit Natural(uint32_t value);
  explicit Natural(std::string_view digits);  // decimal, nothing else; none: 0

  static Natural power_of_ten(size_t exponent);

  bool is_zero() const { return limbs_.empty(); }

  friend Natural operator+(const Natural& a, const Natural& b);
  friend Natural operator-(const Natural& a, const Natural& b);  // a >= b
  friend Natural operator*(const Natural& a, const Natural& b);
  friend Natural operator%(const Natural& a, const Natural& b);  // b is not 0
  friend std::strong_ordering operator<=>(const Natural& a, const Natural& b);
  friend bool operator==(const Natural& a, const Natural& b) = default;

 private:
  void drop_leading_zeros();

  std::vector<uint32_t> limbs_;  // base 10^9, the least first; no leading zeros
};

/// An exact fraction of any size. A value type; not reduced.
struct Rational {
  bool negative = false;
  Natural above;
  Natural below{1};  // never 0

  /// `digits` * 10^-`scale`.
  static Rational decimal(std::string_view digits, int64_t scale);

  Rational operator-() const { return {!negative, above, below}; }
  Rational absolute() const { return {false, above, below}; }
};

Rational operator+(const Rational& a, const Rational& b);
Rational operator-(const Rational& a, const Rational& b);
Rational operator*(const Rational& a, const Rational& b);
Rational operator/(const Rational& a, const Rational& b);  // b is not 0
std::strong_ordering operator<=>(const Rational& a, const Rational& b);

/// Whether it is an integer times `divisor`, which is not 0.
bool is_multiple(const Rational& number, const Rational& divisor);
bool operator==(const Rational& a, const Rational& b);

}  // namespace sluice::nodes
