#include "cli/schema/schema_rules.h"

#include <algorithm>

#include "cli/schema/schema_values.h"

namespace sluice::cli {
namespace {

using engine::ParamInfo;
using engine::ParamKind;

// Of a table whose type stands there.
Json where_type_is(const std::string& type, Json then) {
  return {{"if", {{"required", {"type"}}, {"properties", {{"type", {{"const", type}}}}}}}, {"then", std::move(then)}};
}

}  // namespace

// What a preset may give, its pipeline need not have.
bool SchemaRules::is_needed(const ParamInfo& info, const std::string& of) const {
  const auto gives = [&](const auto& named) { return named.second.find(of, info.name) != nullptr; };
  return info.required && std::ranges::none_of(registry_.presets(), gives);
}

Json SchemaRules::of_table(const std::vector<ParamInfo>& params, const std::string& of) const {
  Json required = Json::array(), properties = Json::object();
  for (const ParamInfo& info : params) {
    if (rule_ == Rule::kComplete && is_needed(info, of)) required.push_back(info.name);
    if (Json inner = of_value(info, of); !inner.empty()) properties[info.name] = std::move(inner);
  }
  Json rules = Json::object();
  if (!required.empty()) rules["required"] = std::move(required);
  if (!properties.empty()) rules["properties"] = std::move(properties);
  return rules;
}

Json SchemaRules::of_value(const ParamInfo& info, const std::string& of) const {
  if (info.kind == ParamKind::kTable) return of_table(info.children, of + "." + info.name);
  if (info.kind == ParamKind::kTables) {
    Json items = of_table(info.children, of + "." + info.name);
    return items.empty() ? Json::object() : Json{{"items", std::move(items)}};
  }
  if (info.kind == ParamKind::kComponent) return reference_to(name() + "." + info.component);
  return Json::object();
}

Json SchemaRules::of_variant(const TypedVariant& variant) const {
  Json rules = of_table(variant.params, variant.preset_of);
  if (rule_ != Rule::kComplete) return rules;
  for (const std::string& key : variant.language_required) rules["required"].push_back(key);
  return rules;
}

// Of a table whose type stands elsewhere: each value is one that some type takes.
Json SchemaRules::of_some_type(const TypedTable& table) const {
  Json properties = Json::object();
  for (const std::string& key : table.keys()) {
    Json any = Json::array();
    for (const KeyValue& value : values_of_key(table, key)) {
      const Json inner = value.param == nullptr ? Json() : of_value(*value.param, {});
      any.push_back(inner.empty() ? value.reference : Json{{"allOf", Json::array({value.reference, inner})}});
    }
    if (!any.empty()) properties[key] = any.size() == 1 ? any.front() : Json{{"anyOf", any}};
  }
  return properties;
}

Json SchemaRules::of_typed(const TypedTable& table) const {
  Json rules = Json::object(), choices = Json::array();
  for (const TypedVariant& variant : table.variants) {
    if (Json inner = of_variant(variant); !inner.empty()) choices.push_back(where_type_is(variant.type, std::move(inner)));
  }
  if (rule_ == Rule::kComplete) {
    rules["required"] = {"type"};
  } else {
    rules["properties"] = {{"type", {{"enum", table.types()}}}};
    rules["if"] = {{"not", {{"required", {"type"}}}}};
    rules["then"] = {{"propertyNames", {{"enum", table.keys()}}}, {"properties", of_some_type(table)}};
  }
  if (!choices.empty()) rules["allOf"] = std::move(choices);
  return rules;
}

// `false` in place of a table removes one that is inherited.
Json SchemaRules::of_node(const TypedTable& table) const {
  Json rules = of_typed(table);
  if (rule_ == Rule::kComplete) rules["type"] = "object";
  return rules;
}

Json SchemaRules::of_component(const TypedTable& table) const {
  Json rules{{"if", {{"type", "object"}}}, {"then", of_typed(table)}};
  if (rule_ == Rule::kKnown) {
    rules["else"] = {{"enum", table.types()}};
    return rules;
  }
  Json with_parameters = Json::array();  // a name alone does not suffice
  for (const TypedVariant& variant : table.variants) {
    if (of_variant(variant).contains("required")) with_parameters.push_back(variant.type);
  }
  if (!with_parameters.empty()) rules["else"] = {{"not", {{"enum", std::move(with_parameters)}}}};
  return rules;
}

}  // namespace sluice::cli
