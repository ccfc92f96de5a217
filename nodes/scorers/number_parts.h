#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Pieces of numbers as people write them. Each take_* removes from the front of `text` what it returns, and nothing where the
/// piece is not there.
namespace sluice::nodes {

/// A larger exponent belongs to no answer, and would cost as much memory as it says.
constexpr int64_t kLargestExponent = 100;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A sign with the blanks around it; whether it is a minus.
bool take_sign(std::string_view& text);

/// A sign and a currency sign, in either order: -$5, $-5.
bool take_sign_and_currency(std::string_view& text);

std::string_view take_digits(std::string_view& text);

/// Digits without the commas of 1,234,567: groups of three after each comma. A comma that is followed by anything else ends the
/// number.
std::string take_integer(std::string_view& text);

/// The digits after a point that is followed by a digit.
std::string_view take_decimals(std::string_view& text);

/// Only if a whole exponent is there, else 0: the e of "5 eggs" is none.
int64_t take_exponent(std::string_view& text);

/// The digits of "/4" after an integer, else nothing; only where a digit follows the slash, since "5 km/h" has a unit.
std::string take_denominator(std::string_view& text);

}  // namespace sluice::nodes
