#include "cli/schema/schema_values.h"

#include <cmath>
#include <memory>

#include "base/error.h"
#include "dsl/toml_source.h"
#include "engine/contract/params/schedule_params.h"

namespace sluice::cli {
namespace {

using engine::ParamInfo;
using engine::ParamKind;

// Numbers of a schema are written as a person writes them: 1, not 1.0.
Json number_json(double value) {
  constexpr double kExact = 1LL << 53;
  if (value == std::trunc(value) && std::abs(value) < kExact) return static_cast<int64_t>(value);
  return value;
}

Json json_of(const engine::Value& value);

Json json_of(const engine::Table& table) {
  Json json = Json::object();
  for (const engine::Entry& entry : table.entries) json[entry.key] = json_of(entry.value);
  return json;
}

Json json_of(const engine::Array& array) {
  Json json = Json::array();
  for (const engine::Value& value : array) json.push_back(json_of(value));
  return json;
}

Json json_of(const engine::Value& value) {
  return std::visit(
      [](const auto& data) {
        using T = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<T, engine::Table> || std::is_same_v<T, engine::Array>)
          return json_of(data);
        else
          return Json(data);
      },
      value.data);
}

Json default_json(const std::string& toml) {
  const std::string line = "value = " + toml;
  Problems problems;
  const auto table = dsl::parse_toml(line, std::make_shared<SourceText>(SourceText{"a default", line}), "", problems);
  SLUICE_CHECK(table && problems.empty(), "the default " + toml + " is not TOML");
  return json_of(table->entries.front().value);
}

void add_range(Json& schema, const ParamInfo& info) {
  if (info.minimum) schema[info.minimum_excluded ? "exclusiveMinimum" : "minimum"] = number_json(*info.minimum);
  if (info.maximum && std::isfinite(*info.maximum)) schema["maximum"] = number_json(*info.maximum);
}

Json number_schema(const char* type, const ParamInfo& info) {
  Json schema{{"type", type}};
  add_range(schema, info);
  return schema;
}

Json integer_schema(const ParamInfo& info) {
  Json schema = number_schema("integer", info);
  if (!info.or_auto) return schema;
  schema["type"] = {"integer", "string"};
  schema["pattern"] = "^auto$";
  return schema;
}

// Or the table of a schedule: ranges are of numbers, keys of tables.
Json scheduled_schema(const ParamInfo& info) {
  Json schema = table_schema(engine::schedule_table(info).erased().infos());
  schema["type"] = {"number", "object"};
  add_range(schema, info);
  return schema;
}

Json text_schema() { return {{"type", "string"}, {"minLength", 1}}; }

Json paths_schema() { return {{"type", {"string", "array"}}, {"minLength", 1}, {"minItems", 1}, {"items", text_schema()}}; }

Json kind_schema(const ParamInfo& info) {
  switch (info.kind) {
    case ParamKind::kBoolean:
      return {{"type", "boolean"}};
    case ParamKind::kInteger:
      return integer_schema(info);
    case ParamKind::kReal:
      return number_schema("number", info);
    case ParamKind::kScheduled:
      return scheduled_schema(info);
    case ParamKind::kString:
      return info.required ? text_schema() : Json{{"type", "string"}};
    case ParamKind::kChoice:
      return {{"type", "string"}, {"enum", info.choices}};
    case ParamKind::kPath:
      return text_schema();
    case ParamKind::kPaths:
      return paths_schema();
    case ParamKind::kReals:
      return {{"type", "array"}, {"items", number_schema("number", info)}};
    case ParamKind::kStrings: {
      Json element{{"type", "string"}};
      if (!info.choices.empty()) element["enum"] = info.choices;
      return {{"type", "array"}, {"items", std::move(element)}};
    }
    case ParamKind::kTable:
      return table_schema(info.children);
    case ParamKind::kTables:
      return {{"type", "array"}, {"items", table_schema(info.children)}};
    case ParamKind::kComponent:
      return {{"allOf", Json::array({reference_to(info.component)})}};  // what stands beside a reference itself is ignored
  }
  return {};
}

}  // namespace

Json reference_to(const std::string& definition) { return {{"$ref", "#/definitions/" + definition}}; }

Json value_schema(const ParamInfo& info) {
  Json schema = Json::object();
  if (!info.doc.empty()) schema["description"] = info.doc + (info.unit.empty() ? "" : " (" + info.unit + ")");
  schema.update(kind_schema(info));
  if (!info.required && !info.default_text.empty()) schema["default"] = default_json(info.default_text);
  return schema;
}

Json table_schema(const std::vector<ParamInfo>& params) {
  Json properties = Json::object();
  for (const ParamInfo& info : params) properties[info.name] = value_schema(info);
  return {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

Json name_schema(const std::string& doc) { return {{"description", doc}, {"type", "string"}, {"minLength", 1}}; }

Json names_schema(const std::string& doc) {
  return {{"description", doc}, {"type", "array"}, {"uniqueItems", true}, {"items", {{"type", "string"}, {"minLength", 1}}}};
}

Json offered_names(const std::vector<std::pair<std::string, std::string>>& names) {
  Json any = Json::array();
  for (const auto& [name, doc] : names) any.push_back({{"const", name}, {"description", doc}});
  any.push_back(Json::object());
  return any;
}

}  // namespace sluice::cli
