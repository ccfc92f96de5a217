#pragma once

#include <optional>
#include <string_view>

#include "nodes/scorers/math/rational.h"

namespace sluice::nodes {

/// A number that was found in a text. 50% is 50, with `percent` set.
struct NumberInText {
  Rational value;
  bool percent = false;
};

/// All read a text that plain_math() wrote, exactly: nothing goes through floating point. A number is
///
///   -1,234.50   1.5e3   1.5 \times 10^{3}   10^3   3/4   \frac{3}{4}   2 1/3   2\frac{1}{3}   $5   -$5   50%   50 percent   72 km
///   5 million   2 hundred thousand
///
/// with a comma before each group of three digits; a mixed number has one blank and a proper fraction. Not a number: a power
/// (2^10; those of ten are), a date, time or version (1/2/25, 12:30, 1.2.3), a product with something unknown (3x, 2\pi,
/// 3\sqrt{2}; of the letters that hang on a number alone g h l m s A C F J K L N V W are units), a part of a name (x2, x_2,
/// GPT-4), an exponent, more than 400 digits, an exponent beyond 100, a division by zero.

/// The last number that stands anywhere in the text. What is its sign: number_sign.h.
std::optional<NumberInText> last_number(std::string_view text);

/// The number of a text that has a single one: no other digits but those of names (GPT-4, x_1), no relation (x > 7), and no
/// operator beside the number (x - 3, 3!). Nothing when the text is anything else.
std::optional<NumberInText> single_number(std::string_view text);

/// The number that the text is: with a unit after it, which is any text without further numbers, operators and the words "or"
/// and "and"; with quotes, emphasis, dollar signs, braces, parentheses and final punctuation around it; or after the last equals
/// sign (x = 5). Nothing when the text is anything else.
std::optional<NumberInText> whole_number(std::string_view text);

}  // namespace sluice::nodes
