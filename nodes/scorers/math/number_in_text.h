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

/// Both read a text that plain_math() wrote, exactly: nothing goes through floating point. A number is
///
///   -1,234.50   1.5e3   1.5 \times 10^{3}   3/4   \frac{3}{4}   2 1/3   2\frac{1}{3}   $5   -$5   50%   50 percent   72 km
///
/// with a comma before each group of three digits; a mixed number has one blank and a proper fraction. Not a number: a power
/// (2^10), a date or version (1/2/25, 1.2.3), a product with something unknown (3x, 2\pi, 3\sqrt{2}; of the letters that hang on
/// a number alone g h l m s A C F J K L N V W are units), a part of a name (x2, x_2, GPT-4), an exponent, more than 400 digits,
/// an exponent beyond 100, a division by zero.

/// The last number that stands anywhere in the text. A minus is its sign where it stands directly before it and nothing that it
/// could be subtracted from directly before the minus: 10-15 ends with 15.
std::optional<NumberInText> last_number(std::string_view text);

/// The number that the text is: with a unit behind it, which is any text without further numbers and operators, quotes, emphasis,
/// dollar signs and final punctuation around it, or behind the last equals sign (x = 5). Nothing when the text is anything else.
std::optional<NumberInText> whole_number(std::string_view text);

}  // namespace sluice::nodes
