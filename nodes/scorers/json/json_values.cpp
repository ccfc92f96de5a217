#include "nodes/scorers/json/json_values.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text/strings.h"
#include "nodes/scorers/exact_json.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr std::array<std::string_view, 7> kTypes{"null", "boolean", "integer", "number", "string", "array", "object"};

// The digits of an integer; empty where the value is none.
std::string digits_of(const JsonValue& value) {
  if (value.isInteger()) return std::to_string(value.asInteger());
  return value.isString() ? std::string(big_integer_in(std::string_view(value.asString()))) : std::string();
}

Rational decimal_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::string digits(take_digits(text));
  const std::string_view decimals = take_decimals(text);
  digits += decimals;
  const Rational value = Rational::decimal(digits, static_cast<int64_t>(decimals.size()) - take_exponent(text));
  return negative ? -value : value;
}

std::string list_text(const JsonValue& list) {
  std::vector<std::string> parts;
  list.applyToArray([&](const JsonValue& element) { return parts.push_back(canonical_text(element)), true; });
  return "[" + join(parts, ",") + "]";
}

// The library's objects are in the order of their keys.
std::string object_text(const JsonValue& object) {
  std::vector<std::string> parts;
  object.applyToObject([&](const std::string& key, const JsonValue& value) {
    return parts.push_back(nlohmann::json(key).dump() + ":" + canonical_text(value)), true;
  });
  return "{" + join(parts, ",") + "}";
}

}  // namespace

bool is_type(std::string_view name) { return std::ranges::find(kTypes, name) != kTypes.end(); }

bool has_type(const JsonValue& value, std::string_view type) {
  if (type == "integer") return !digits_of(value).empty();
  if (type == "number") return value.isNumber() || !digits_of(value).empty();
  if (type == "string") return text_in(value).has_value();
  if (type == "null") return value.isNull();
  if (type == "boolean") return value.isBool();
  return type == "array" ? value.isArray() : value.isObject();
}

std::optional<Rational> number_of(const JsonValue& value) {
  if (const std::string digits = digits_of(value); !digits.empty()) return decimal_of(digits);
  return value.isNumber() ? std::optional(decimal_of(real_text(value.asDouble()))) : std::nullopt;
}

std::optional<std::string> text_in(const JsonValue& value) {
  if (!value.isString() || !digits_of(value).empty()) return std::nullopt;
  return value.asString();
}

std::string canonical_text(const JsonValue& value) {
  if (value.isArray()) return list_text(value);
  if (value.isObject()) return object_text(value);
  if (const std::string digits = digits_of(value); !digits.empty()) return digits;
  if (value.isNumber()) return real_text(value.asDouble());
  if (value.isString()) return nlohmann::json(value.asString()).dump();
  return value.isNull() ? "null" : value.asBool() ? "true" : "false";
}

}  // namespace sluice::nodes
