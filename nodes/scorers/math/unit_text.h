#pragma once

#include <string_view>

/// What may stand after a number without making another one of it. The texts are those of plain_math().
namespace sluice::nodes {

/// A unit, or nothing: any text without further numbers, operators and the words "or" and "and"; 72 (seventy-two) too. Of
/// the letters that stand alone g h l m s A C F J K L N V W are units.
bool is_unit(std::string_view text);

/// Whether a letter is at the front that stands alone and is no unit: 3x, 3 x.
bool begins_with_variable(std::string_view text);

/// ^2, but not the degrees of ^\circ.
bool is_power(std::string_view text);

}  // namespace sluice::nodes
