#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json/json.h"

namespace sluice::text {

/// The value that begins at `at`, which is moved after it, as JSON or Python write one: 'a', "a", 1, True, null, [1, 2], (1, 2),
/// {"a": 1}, {a: 1}. `quote`: a mark that may stand around strings too, which then have no escapes. Nothing, and `at` as it was,
/// where no value stands, or one that nests deeper than 64, or a text that is no UTF-8.
std::optional<Json> read_call_value(std::string_view text, size_t& at, std::string_view quote = {});

/// What the plain text of an argument means to a tool whose JSON schema for it is `schema` (of a whole that `root` is, for its
/// references). A text stays one where the schema has strings; else it is read as a value, and stays a text if it is none of what
/// the schema has. Without a type in the schema whatever reads as JSON is that.
Json typed_call_value(std::string_view raw, const Json& schema, const Json& root);

}  // namespace sluice::text
