#include "text/tokenizer/reference_number.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace sluice::text {

double as_reference_reads(double value) {
  // d.dddde-XX: at most 17 digits, which 64 bits hold.
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value), std::chars_format::scientific).ptr;
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t e = text.find('e');
  uint64_t digits = 0;
  int exponent = 0;
  for (const char c : text.substr(0, e)) {
    if (c == '.') continue;
    digits = 10 * digits + static_cast<uint64_t>(c - '0');
    --exponent;
  }
  int power = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, power);
  exponent += 1 + power;
  if (exponent >= 0) return value;  // an integer, or so large that it is no score
  double number = static_cast<double>(digits);
  for (; exponent < -std::numeric_limits<double>::max_exponent10; exponent += std::numeric_limits<double>::max_exponent10) {
    number /= 1e308;
  }
  number /= std::stod("1e" + std::to_string(-exponent));
  return std::copysign(number, value);
}

}  // namespace sluice::text
