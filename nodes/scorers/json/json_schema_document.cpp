#include "nodes/scorers/json/json_schema_document.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/scorers/exact_json.h"
#include "nodes/scorers/json/json_schema_checks.h"

namespace sluice::nodes {
namespace {

using nlohmann::json;

// What the value of a keyword holds.
enum class Holds { kOther, kSchema, kSchemas, kNamedSchemas, kRefused };

// Which numbers the value of a keyword may be; the library that checks would take texts, and divide by 0.
enum class Takes { kAny, kNumber, kPositive, kCount };

struct Keyword {
  std::string_view name;
  Holds holds = Holds::kOther;
  bool same_value = false;  // its schemas are for the very value that the keyword is for
  Takes takes = Takes::kAny;
};

constexpr Keyword number(std::string_view name, Takes takes = Takes::kNumber) { return {.name = name, .takes = takes}; }
constexpr Keyword count(std::string_view name) { return number(name, Takes::kCount); }

constexpr std::array<Keyword, 65> kKeywords{{
    {"additionalItems", Holds::kSchema},
    {"additionalProperties", Holds::kSchema},
    {"contains", Holds::kSchema},
    {"items", Holds::kSchema},
    {"propertyNames", Holds::kSchema},
    {"not", Holds::kSchema, true},
    {"if", Holds::kSchema, true},
    {"then", Holds::kSchema, true},
    {"else", Holds::kSchema, true},
    {"allOf", Holds::kSchemas, true},
    {"anyOf", Holds::kSchemas, true},
    {"oneOf", Holds::kSchemas, true},
    {"properties", Holds::kNamedSchemas},
    {"definitions", Holds::kNamedSchemas},
    {"$defs", Holds::kNamedSchemas},
    {"dependencies", Holds::kNamedSchemas, true},
    {"$ref"},
    {"$id"},
    {"$schema"},
    {"$comment"},
    {"title"},
    {"description"},
    {"default"},
    {"examples"},
    {"readOnly"},
    {"writeOnly"},
    {"deprecated"},
    {"contentEncoding"},
    {"contentMediaType"},
    {"type"},
    {"enum"},
    {"const"},
    number("multipleOf", Takes::kPositive),
    number("maximum"),
    number("exclusiveMaximum"),
    number("minimum"),
    number("exclusiveMinimum"),
    count("maxLength"),
    count("minLength"),
    {"pattern"},
    {"format"},
    count("maxItems"),
    count("minItems"),
    {"uniqueItems"},
    count("maxProperties"),
    count("minProperties"),
    {"required"},
    {"patternProperties", Holds::kRefused},
    {"dependentRequired", Holds::kRefused},
    {"dependentSchemas", Holds::kRefused},
    {"unevaluatedItems", Holds::kRefused},
    {"unevaluatedProperties", Holds::kRefused},
    {"prefixItems", Holds::kRefused},
    {"minContains", Holds::kRefused},
    {"maxContains", Holds::kRefused},
    {"$recursiveRef", Holds::kRefused},
    {"$dynamicRef", Holds::kRefused},
    {"$anchor", Holds::kRefused},
    {"id", Holds::kRefused},
    {"extends", Holds::kRefused},
    {"divisibleBy", Holds::kRefused},
    {"disallow", Holds::kRefused},
    {"$recursiveAnchor", Holds::kRefused},
    {"nullable", Holds::kRefused},
    {"example"},
}};

const Keyword* find_keyword(std::string_view name) {
  const auto found = std::ranges::find(kKeywords, name, &Keyword::name);
  return found == kKeywords.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(const std::string& place, const std::string& what, const std::string& help = {}) {
  throw UserError("at " + sluice::quoted("#" + place) + ": " + what, help);
}

std::string big_integer(const json& value) {
  return value.is_string() ? std::string(big_integer_in(std::string_view(value.get_ref<const std::string&>()))) : std::string();
}

bool is_text(const json& value) { return value.is_string() && big_integer(value).empty(); }

std::string below(const std::string& place, const std::string& key) { return (json::json_pointer(place) / key).to_string(); }

// One pass over all schemas of a document, then one over what they refer to.
class Preparation {
 public:
  explicit Preparation(json& root) : root_(root) {}

  void run() {
    visit(root_, "");
    resolve_references();
    for (const auto& [schema, links] : same_value_) check_circle(schema);
  }

 private:
  struct Reference {
    const json* from;
    std::string place;
    std::string target;
  };

  void visit(json& schema, const std::string& place) {
    if (!schema.is_object() && !schema.is_boolean()) refuse(place, "a schema must be an object, true or false");
    places_[&schema] = place;
    if (!schema.is_object()) return;
    for (auto& [key, value] : schema.items()) visit_keyword(schema, key, value, place);
    rename_checks(schema, place);
  }

  void visit_keyword(const json& schema, const std::string& key, json& value, const std::string& place) {
    const Keyword* keyword = find_keyword(key);
    if (!keyword) return refuse_typing_error(key, place);
    const std::string inside = below(place, key);
    if (keyword->holds == Holds::kRefused) refuse(place, key + " is not supported", "what draft 7 of JSON Schema has is");
    require_number(*keyword, value, inside);
    if (key == "$ref") note_reference(schema, value, place);
    if (keyword->holds == Holds::kSchema && !(key == "items" && value.is_array())) {
      link(schema, value, *keyword);
      visit(value, inside);
    } else if (keyword->holds == Holds::kSchema || keyword->holds == Holds::kSchemas) {
      if (!value.is_array()) refuse(inside, "a list of schemas is expected");
      for (size_t i = 0; i < value.size(); ++i)
        link(schema, value[i], *keyword), visit(value[i], below(inside, std::to_string(i)));
    } else if (keyword->holds == Holds::kNamedSchemas) {
      if (!value.is_object()) refuse(inside, "an object of schemas is expected");
      for (auto& [name, named] : value.items()) {
        if (key == "dependencies" && named.is_array()) continue;
        link(schema, named, *keyword), visit(named, below(inside, name));
      }
    }
  }

  static void require_number(const Keyword& keyword, const json& value, const std::string& place) {
    if (keyword.takes == Takes::kAny) return;
    const std::string digits = big_integer(value);
    if (!value.is_number() && digits.empty()) refuse(place, "a number is expected");
    const bool negative = value.is_number() ? value.get<double>() < 0 : digits.starts_with('-');
    if (keyword.takes == Takes::kPositive && (negative || value == 0)) refuse(place, "a number above 0 is expected");
    if (keyword.takes == Takes::kCount && (negative || !value.is_number_integer()))
      refuse(place, "an integer of at least 0 is expected, below 2^63");
  }

  static void refuse_typing_error(const std::string& key, const std::string& place) {
    std::vector<std::string> names;
    for (const Keyword& keyword : kKeywords) names.emplace_back(keyword.name);
    const std::string nearest = did_you_mean(key, names);
    if (!nearest.empty()) refuse(place, key + " is no keyword of JSON Schema", "did you mean " + nearest + "?");
  }

  void link(const json& from, const json& to, const Keyword& keyword) {
    if (keyword.same_value) same_value_[&from].push_back(&to);
  }

  void note_reference(const json& schema, const json& value, const std::string& place) {
    if (!value.is_string()) refuse(place, "$ref must be a string");
    const std::string target = value.get<std::string>();
    if (!target.starts_with('#'))
      refuse(place, "$ref to another document, " + sluice::quoted(target), "copy it into definitions");
    references_.push_back({&schema, place, target.substr(1)});
  }

  void rename_checks(json& schema, const std::string& place) {
    for (const char* keyword : kOwnKeywords) {
      const auto found = schema.find(keyword);
      if (found == schema.end()) continue;
      check(keyword, *found, place);
      schema[own_name(keyword)] = *found;
      schema.erase(keyword);
    }
  }

  static void check(std::string_view keyword, const json& value, const std::string& place) {
    if (keyword == "type") return check_type(value, place);
    if (keyword == "enum" && !value.is_array()) refuse(place, "enum must be a list");
    if (keyword == "uniqueItems" && !value.is_boolean()) refuse(place, "uniqueItems must be true or false");
    if (keyword != "pattern" && keyword != "format") return;
    if (!is_text(value)) refuse(place, std::string(keyword) + " must be a string");
    if (keyword == "pattern") return check_pattern(value.get<std::string>(), place);
    const std::string format = value.get<std::string>();
    if (is_known_format(format)) return;
    refuse(place, "format " + sluice::quoted(format) + " is not checked", "date, time and date-time are; a pattern can stand in");
  }

  static void check_type(const json& value, const std::string& place) {
    const json types = value.is_array() ? value : json::array({value});
    const bool known =
        std::ranges::all_of(types, [](const json& type) { return is_text(type) && is_type(type.get_ref<const std::string&>()); });
    if (!known) refuse(place, "type must be " + sluice::quoted("object") + " or another type of JSON, or a list of these");
  }

  static void check_pattern(const std::string& pattern, const std::string& place) {
    try {
      schema_pattern(pattern);
    } catch (const UserError& error) {
      refuse(place, error.message());
    }
  }

  void resolve_references() {
    for (const Reference& reference : references_) {
      const json* target = nullptr;
      try {
        target = &std::as_const(root_).at(json::json_pointer(reference.target));
      } catch (const json::exception&) {
      }
      if (!target || !places_.contains(target)) {
        refuse(reference.place, "$ref " + sluice::quoted("#" + reference.target) + " leads to no schema of this document",
               "schemas to refer to stand under definitions or $defs");
      }
      same_value_[reference.from].push_back(target);
    }
  }

  // A schema that asks itself about the same value would never come to an end.
  void check_circle(const json* schema) {
    if (finished_[schema]) return;
    if (open_[schema]) refuse(places_[schema], "a reference leads back to where it came from, for the same value");
    open_[schema] = true;
    if (const auto links = same_value_.find(schema); links != same_value_.end()) {
      for (const json* next : links->second) check_circle(next);
    }
    open_[schema] = false;
    finished_[schema] = true;
  }

  json& root_;
  std::map<const json*, std::string> places_;
  std::map<const json*, std::vector<const json*>> same_value_;
  std::vector<Reference> references_;
  std::map<const json*, bool> open_, finished_;
};

}  // namespace

void prepare_schema(json& root) { Preparation(root).run(); }

}  // namespace sluice::nodes
