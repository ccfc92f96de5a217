#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/unicode/oniguruma.h"

namespace sluice::nodes {

/// Numbers without a fraction become integers: to JSON Schema 1.0 and 1 are the same number.
void make_integers(nlohmann::json& value);

/// The keywords under which prepare_schema() leaves `pattern` and `format`.
inline constexpr const char* kPatternCheck = "\x01pattern";
inline constexpr const char* kFormatCheck = "\x01format";

/// Goes through a draft 7 schema, refuses what JsonSchemaChecker refuses, and renames `pattern` and `format`: the library would
/// check them with std::regex, which overflows the stack on a long text. Throws UserError with a JSON pointer to the place.
void prepare_schema(nlohmann::json& root);

/// The regular expression of a `pattern`, which is written in the language of ECMA 262. Throws UserError when it is not valid.
text::Regex schema_pattern(std::string_view pattern);

bool is_known_format(std::string_view format);

/// Whether a text has a format that is known: date, time or date-time (RFC 3339).
bool has_format(std::string_view text, std::string_view format);

}  // namespace sluice::nodes
