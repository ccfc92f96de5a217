#include "nodes/scorers/math/magnitude.h"

#include <algorithm>
#include <string>

#include "nodes/scorers/math/math_text.h"
#include "nodes/scorers/math/number_words.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr size_t kMostDigits = 400;

bool is_proper(const Rational& fraction) { return fraction.above < fraction.below; }

std::optional<Rational> quotient(const Rational& above, const Rational& below) {
  if (below.above.is_zero()) return std::nullopt;
  return above / below;
}

// A signed decimal and nothing else.
std::optional<Rational> simple_number(std::string_view text) {
  text = without_blanks(text);
  const bool negative = take_sign(text);
  const std::string whole = take_integer(text);
  const std::string_view decimals = take_decimals(text);
  const size_t digits = whole.size() + decimals.size();
  if (digits == 0 || digits > kMostDigits || !without_blanks(text).empty()) return std::nullopt;
  const Rational value = Rational::decimal(whole + std::string(decimals), static_cast<int64_t>(decimals.size()));
  return negative ? -value : value;
}

// {3} or the 3 of \frac34, and what is left of the text after it.
std::string_view take_argument(std::string_view& text) {
  text = without_blanks(text);
  const Braces braces = braces_at(text);
  const std::string_view inside = braces.closed       ? text.substr(1, braces.length - 2)
                                  : braces.length > 0 ? std::string_view()
                                                      : text.substr(0, 1);
  text.remove_prefix(std::max(braces.length, inside.size()));
  return inside;
}

// \frac{3}{4}; of one whose parts are no numbers everything is taken.
std::optional<Rational> take_fraction_command(std::string_view& text) {
  text.remove_prefix(kFraction.size());
  const auto above = simple_number(take_argument(text));
  const auto below = simple_number(take_argument(text));
  return above && below ? quotient(*above, *below) : std::nullopt;
}

// The ^8 or ^{8} of 10^8.
std::optional<int64_t> take_power(std::string_view& text) {
  if (!text.starts_with('^')) return std::nullopt;
  std::string_view rest = text.substr(1);
  const bool braces = rest.starts_with('{');
  if (braces) rest.remove_prefix(1);
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  const std::string_view digits = take_digits(rest);
  if (digits.empty() || digits.size() > 4 || (braces && !rest.starts_with('}'))) return std::nullopt;
  text = rest.substr(braces ? 1 : 0);
  const int64_t exponent = std::stoll(std::string(digits));
  return negative ? -exponent : exponent;
}

// The * 10^8 of 1.5 * 10^{8}.
std::optional<int64_t> take_power_of_ten(std::string_view& text) {
  std::string_view rest = without_blanks(text);
  if (!rest.starts_with('*') && !rest.starts_with('x')) return std::nullopt;
  rest = without_blanks(rest.substr(1));
  if (!rest.starts_with("10")) return std::nullopt;
  rest.remove_prefix(2);
  const auto power = take_power(rest);
  if (power) text = rest;
  return power;
}

// The fraction of a mixed number, after its integer.
std::optional<Rational> take_mixed(std::string_view& text) {
  std::string_view rest = without_blanks(text);
  std::optional<Rational> fraction;
  if (command_at(rest) == kFraction) {
    fraction = take_fraction_command(rest);
  } else if (text.size() > 1 && text[0] == ' ' && is_digit(text[1])) {
    const std::string above(take_digits(rest));
    if (!rest.starts_with('/')) return std::nullopt;
    rest.remove_prefix(1);
    const std::string below(take_digits(rest));
    if (std::max(above.size(), below.size()) > kMostDigits) return std::nullopt;
    fraction = quotient(Rational::decimal(above, 0), Rational::decimal(below, 0));
  }
  if (!fraction || fraction->negative || fraction->above.is_zero() || !is_proper(*fraction)) return std::nullopt;
  text = rest;
  return fraction;
}

// Without words after it.
std::optional<Rational> take_written(std::string_view& text) {
  if (command_at(text) == kFraction) return take_fraction_command(text);
  const std::string whole = take_integer(text);
  const std::string_view decimals = take_decimals(text);
  const size_t digits = whole.size() + decimals.size();
  if (digits == 0 || digits > kMostDigits) return std::nullopt;

  const auto scale = static_cast<int64_t>(decimals.size());
  int64_t exponent = take_exponent(text);
  if (exponent == 0) exponent = take_power_of_ten(text).value_or(0);
  if (whole == "10" && scale == 0 && exponent == 0) {
    if (const auto power = take_power(text)) {
      if (std::abs(*power) > kLargestExponent) return std::nullopt;
      return Rational::decimal("1", -*power);
    }
  }
  if (std::abs(exponent) > kLargestExponent) return std::nullopt;
  const Rational value = Rational::decimal(whole + std::string(decimals), scale - exponent);
  if (exponent != 0 || scale != 0) return value;

  if (const auto fraction = take_mixed(text)) return value + *fraction;
  const std::string denominator = take_denominator(text);
  if (denominator.empty()) return value;
  if (denominator.size() > kMostDigits) return std::nullopt;
  return quotient(value, Rational::decimal(denominator, 0));
}

}  // namespace

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

std::optional<Rational> take_magnitude(std::string_view& text) {
  const auto value = take_written(text);
  const int64_t scale = value ? take_scale_words(text) : 0;
  return scale == 0 ? value : *value * Rational::decimal("1", -scale);
}

}  // namespace sluice::nodes
