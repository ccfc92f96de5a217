#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::nodes {

/// The value of an expression of whole numbers with + - * / ( ), signs and blanks, exactly. None if it is not one, if a quotient
/// is not whole, if a number or a result does not fit 64 bits, or if parentheses and signs are nested more than 100 deep.
std::optional<int64_t> evaluate(std::string_view expression);

}  // namespace sluice::nodes
