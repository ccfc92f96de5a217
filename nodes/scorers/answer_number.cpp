// canonical_number: a small reader of numbers as people write them.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/text/strings.h"
#include "nodes/scorers/answer_text.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

// digits * 10^-scale without leading and trailing zeros: "7.25", "0".
std::string decimal_text(bool negative, std::string digits, int64_t scale) {
  if (scale < 0) digits.append(static_cast<size_t>(-scale), '0'), scale = 0;
  const auto places = static_cast<size_t>(scale);
  if (digits.size() <= places) digits.insert(0, places + 1 - digits.size(), '0');
  std::string whole = digits.substr(0, digits.size() - places);
  std::string fraction = digits.substr(digits.size() - places);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (fraction.empty() && whole == "0") return "0";
  return (negative ? "-" : "") + whole + (fraction.empty() ? "" : "." + fraction);
}

std::optional<int64_t> small_integer(const std::string& digits) {
  constexpr size_t kSafeDigits = 18;
  int64_t value = 0;
  if (digits.size() > kSafeDigits) return std::nullopt;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// As a decimal where it has one, so that 3/4 is 0.75; else reduced, so that 2/6 is 1/3.
std::optional<std::string> fraction_text(bool negative, const std::string& above, const std::string& below) {
  auto numerator = small_integer(above), denominator = small_integer(below);
  if (!numerator || !denominator || *denominator == 0) return std::nullopt;
  const int64_t common = std::gcd(*numerator, *denominator);
  int64_t rest = *denominator / common;
  int64_t twos = 0, fives = 0;
  for (; rest % 2 == 0; rest /= 2) ++twos;
  for (; rest % 5 == 0; rest /= 5) ++fives;
  const int64_t places = std::max(twos, fives);
  __int128 scaled = *numerator / common;
  for (int64_t i = twos; i < places && scaled < (__int128{1} << 100); ++i) scaled *= 2;
  for (int64_t i = fives; i < places && scaled < (__int128{1} << 100); ++i) scaled *= 5;
  if (rest != 1 || scaled >= (__int128{1} << 100)) {
    return (negative ? "-" : "") + std::to_string(*numerator / common) + "/" + std::to_string(*denominator / common);
  }
  std::string digits;
  for (; scaled > 0; scaled /= 10) digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(scaled % 10)));
  return decimal_text(negative, digits, places);
}

}  // namespace

std::optional<std::string> canonical_number(std::string_view text) {
  text = trim(text);
  const bool negative = take_sign_and_currency(text);
  const std::string whole = take_integer(text);
  std::optional<std::string> number;
  const std::string denominator = whole.empty() ? std::string() : take_denominator(text);
  if (!denominator.empty()) {
    number = fraction_text(negative, whole, denominator);
  } else {
    const std::string_view fraction = take_decimals(text);
    if (whole.empty() && fraction.empty()) return std::nullopt;
    const int64_t exponent = take_exponent(text);
    if (std::abs(exponent) > kLargestExponent) return std::nullopt;
    number = decimal_text(negative, whole + std::string(fraction), static_cast<int64_t>(fraction.size()) - exponent);
  }
  const bool more_digits = std::ranges::any_of(text, is_digit);  // "16 - 3" is no number
  return more_digits ? std::nullopt : number;
}

}  // namespace sluice::nodes
