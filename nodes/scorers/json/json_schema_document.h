#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/unicode/oniguruma.h"

namespace sluice::nodes {

/// Goes through a draft 7 schema that exact_json() read, refuses what JsonSchemaChecker refuses, and renames kOwnKeywords to
/// own_name(). Throws UserError with a JSON pointer to the place.
void prepare_schema(nlohmann::json& root);

/// The regular expression of a `pattern`, which is written in the language of ECMA 262. Throws UserError when it is not valid.
text::Regex schema_pattern(std::string_view pattern);

bool is_known_format(std::string_view format);

/// Whether a text has a format that is known: date, time or date-time (RFC 3339).
bool has_format(std::string_view text, std::string_view format);

}  // namespace sluice::nodes
