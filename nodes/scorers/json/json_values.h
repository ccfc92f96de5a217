#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <valijson/internal/adapter.hpp>

#include "nodes/scorers/math/rational.h"

/// Values as JSON Schema sees them, whose numbers are exact whatever their size: those of exact_json(), where 1.0 is 1.
namespace sluice::nodes {

using JsonValue = valijson::adapters::Adapter;

/// Whether it is of a type of draft 7: "integer", "number", "string", ...
bool has_type(const JsonValue& value, std::string_view type);

bool is_type(std::string_view name);

/// The number that it is; nothing for other values.
std::optional<Rational> number_of(const JsonValue& value);

/// The text that it is; nothing for other values.
std::optional<std::string> text_in(const JsonValue& value);

/// The same for equal values, and for no others.
std::string canonical_text(const JsonValue& value);

}  // namespace sluice::nodes
