#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>

#include "nodes/scorers/json/json_values.h"

/// The keywords that are checked here and not by the library. It would check patterns with std::regex, which overflows the stack
/// on a long text, compare integers as doubles, and every item of a list with every other one.
namespace sluice::nodes {

inline constexpr std::array<const char*, 13> kOwnKeywords{
    "pattern", "format",           "minLength", "maxLength",        "type",       "enum",       "const",
    "maximum", "exclusiveMaximum", "minimum",   "exclusiveMinimum", "multipleOf", "uniqueItems"};

/// The name under which prepare_schema() leaves such a keyword, so that the library does not see it.
inline std::string own_name(std::string_view keyword) { return "\x01" + std::string(keyword); }

using ValueCheck = std::function<bool(const JsonValue&)>;

/// What such a keyword with `argument` says of values. The argument is one that prepare_schema() lets pass.
ValueCheck check_of(std::string_view keyword, const JsonValue& argument);

}  // namespace sluice::nodes
