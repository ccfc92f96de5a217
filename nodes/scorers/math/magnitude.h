#pragma once

#include <optional>
#include <string_view>

#include "nodes/scorers/math/rational.h"

namespace sluice::nodes {

/// A number without its sign at the front of a text that plain_math() wrote, such as 2\frac{1}{3} or 1.5 million. Takes at least
/// its first digits also where it is none.
std::optional<Rational> take_magnitude(std::string_view& text);

constexpr std::string_view kBlanks = " \t\r\n\v\f";
constexpr std::string_view kFraction = "\\frac";

std::string_view without_blanks(std::string_view text);

}  // namespace sluice::nodes
