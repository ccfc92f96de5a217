#include "nodes/scorers/json/json_schema_checks.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text/utf8.h"
#include "nodes/scorers/json/json_schema_document.h"

namespace sluice::nodes {
namespace {

// What is no text passes.
ValueCheck text_check(std::function<bool(const std::string&)> accepts) {
  return [accepts = std::move(accepts)](const JsonValue& value) {
    const auto text = text_in(value);
    return !text || accepts(*text);
  };
}

ValueCheck pattern_check(const std::string& pattern) {
  auto regex = std::make_shared<const text::Regex>(schema_pattern(pattern));
  return text_check([regex](const std::string& text) { return !regex->find_all(text).empty(); });
}

// Whether `accepts` says so of the value, compared with the argument; what is no number passes.
ValueCheck number_check(const JsonValue& argument, bool (*accepts)(const Rational& value, const Rational& argument)) {
  return [bound = number_of(argument).value(), accepts](const JsonValue& value) {
    const auto number = number_of(value);
    return !number || accepts(*number, bound);
  };
}

ValueCheck length_check(const JsonValue& argument, bool (*accepts)(const Rational& value, const Rational& argument)) {
  return text_check([bound = number_of(argument).value(), accepts](const std::string& text) {
    return accepts(Rational::decimal(std::to_string(count_code_points(text)), 0), bound);
  });
}

bool is_at_most(const Rational& value, const Rational& bound) { return value <= bound; }
bool is_at_least(const Rational& value, const Rational& bound) { return value >= bound; }
bool is_below(const Rational& value, const Rational& bound) { return value < bound; }
bool is_above(const Rational& value, const Rational& bound) { return value > bound; }

ValueCheck type_check(const JsonValue& argument) {
  std::vector<std::string> types;
  if (argument.isString()) types = {argument.asString()};
  if (argument.isArray()) argument.applyToArray([&](const JsonValue& type) { return types.push_back(type.asString()), true; });
  return [types](const JsonValue& value) {
    return std::ranges::any_of(types, [&](const std::string& type) { return has_type(value, type); });
  };
}

ValueCheck one_of(std::set<std::string> allowed) {
  return [allowed = std::move(allowed)](const JsonValue& value) { return allowed.contains(canonical_text(value)); };
}

ValueCheck enum_check(const JsonValue& argument) {
  std::set<std::string> allowed;
  argument.applyToArray([&](const JsonValue& value) { return allowed.insert(canonical_text(value)), true; });
  return one_of(std::move(allowed));
}

bool has_unique_items(const JsonValue& value) {
  std::set<std::string> seen;
  return !value.isArray() || value.applyToArray([&](const JsonValue& item) { return seen.insert(canonical_text(item)).second; });
}

ValueCheck unique_check(const JsonValue& argument) {
  return argument.asBool() ? ValueCheck(has_unique_items) : [](const JsonValue&) { return true; };
}

}  // namespace

ValueCheck check_of(std::string_view keyword, const JsonValue& argument) {
  if (keyword == "pattern") return pattern_check(argument.asString());
  if (keyword == "format") {
    return text_check([format = argument.asString()](const std::string& text) { return has_format(text, format); });
  }
  if (keyword == "type") return type_check(argument);
  if (keyword == "enum") return enum_check(argument);
  if (keyword == "const") return one_of({canonical_text(argument)});
  if (keyword == "uniqueItems") return unique_check(argument);
  if (keyword == "minLength") return length_check(argument, is_at_least);
  if (keyword == "maxLength") return length_check(argument, is_at_most);
  if (keyword == "maximum") return number_check(argument, is_at_most);
  if (keyword == "minimum") return number_check(argument, is_at_least);
  if (keyword == "exclusiveMaximum") return number_check(argument, is_below);
  if (keyword == "exclusiveMinimum") return number_check(argument, is_above);
  if (keyword == "multipleOf") return number_check(argument, is_multiple);
  throw InternalError("a keyword without a check");
}

}  // namespace sluice::nodes
