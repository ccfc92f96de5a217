#include "cli/schema/typed_tables.h"

#include <algorithm>

#include "cli/schema/schema_values.h"
#include "engine/contract/settings.h"
#include "engine/contract/spec/node_keys.h"

namespace sluice::cli {
namespace {

using engine::NodeKey;
using engine::NodeKind;
using engine::ParamInfo;

constexpr const char* kType = "type";

// A source takes no inputs, and every other node has some.
void add_language_keys(TypedVariant& variant, bool is_source) {
  for (const NodeKey& key : engine::node_keys()) {
    if (key.name == kType) continue;
    const bool is_inputs = key.names != nullptr;
    if (is_inputs && is_source) continue;
    Json schema = is_inputs ? names_schema(key.doc) : name_schema(key.doc);
    if (is_inputs) {
      schema["minItems"] = 1;
      variant.language_required.push_back(key.name);
    }
    variant.language_keys[key.name] = std::move(schema);
  }
}

TypedVariant variant_of(const engine::NodeType& type) {
  TypedVariant variant{.type = type.info.type, .summary = type.info.summary, .preset_of = type.info.type};
  const bool is_source = type.kind == NodeKind::kSource;
  add_language_keys(variant, is_source);
  variant.params = type.params.infos();
  if (is_source) {
    const std::vector<ParamInfo> common = engine::source_params().erased().infos();
    variant.params.insert(variant.params.end(), common.begin(), common.end());
  }
  return variant;
}

Json variant_schema(const TypedVariant& variant) {
  Json schema = table_schema(variant.params);
  Json properties{{kType, Json::object()}};
  properties.update(variant.language_keys);
  properties.update(schema["properties"]);
  return {
      {"title", variant.type + ": " + variant.summary}, {"properties", std::move(properties)}, {"additionalProperties", false}};
}

std::string definition_of(const TypedTable& table, const TypedVariant& variant) { return table.kind + "." + variant.type; }

Json offered_types(const TypedTable& table) {
  std::vector<std::pair<std::string, std::string>> names;
  for (const TypedVariant& variant : table.variants) names.emplace_back(variant.type, variant.summary);
  return offered_names(names);
}

Json if_type(const std::string& type, Json then) {
  return {{"if", {{"properties", {{kType, {{"const", type}}}}}}}, {"then", std::move(then)}};
}

const ParamInfo* find_param(const TypedVariant& variant, const std::string& key) {
  const auto found = std::ranges::find(variant.params, key, &ParamInfo::name);
  return found == variant.params.end() ? nullptr : &*found;
}

// What any type takes is never a reason to refuse here, but what an editor that does not follow `if` can tell of a key.
Json keys_schema(const TypedTable& table) {
  Json properties{{kType, {{"type", "string"}, {"minLength", 1}, {"anyOf", offered_types(table)}}}};
  for (const std::string& key : table.keys()) {
    if (key == kType) continue;
    Json any = Json::array();
    for (const KeyValue& value : values_of_key(table, key)) any.push_back(value.reference);
    any.push_back(Json::object());
    properties[key] = {{"anyOf", std::move(any)}};
  }
  return properties;
}

}  // namespace

std::vector<std::string> TypedTable::types() const {
  std::vector<std::string> types;
  for (const TypedVariant& variant : variants) types.push_back(variant.type);
  return types;
}

std::vector<std::string> TypedTable::keys() const {
  std::vector<std::string> keys{kType};
  const auto add = [&](const std::string& key) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  for (const TypedVariant& variant : variants) {
    for (const auto& [key, schema] : variant.language_keys.items()) add(key);
    for (const ParamInfo& info : variant.params) add(info.name);
  }
  return keys;
}

TypedTable node_table(const engine::Registry& registry) {
  TypedTable table{.kind = "node"};
  for (const auto& [name, type] : registry.nodes()) table.variants.push_back(variant_of(type));
  return table;
}

std::vector<TypedTable> component_tables(const engine::Registry& registry) {
  std::vector<TypedTable> tables;
  for (const auto& [key, type] : registry.components()) {
    if (tables.empty() || tables.back().kind != type.kind) tables.push_back({.kind = type.kind});
    tables.back().variants.push_back(
        {.type = type.type, .summary = type.summary, .preset_of = type.kind + ":" + type.type, .params = type.params.infos()});
  }
  return tables;
}

std::vector<KeyValue> values_of_key(const TypedTable& table, const std::string& key) {
  std::vector<KeyValue> values;
  std::vector<Json> seen;
  for (const TypedVariant& variant : table.variants) {
    const ParamInfo* param = find_param(variant, key);
    if (param == nullptr && !variant.language_keys.contains(key)) continue;
    Json schema = param == nullptr ? variant.language_keys[key] : value_schema(*param);
    if (std::ranges::find(seen, schema) != seen.end()) continue;
    seen.push_back(std::move(schema));
    values.push_back({reference_to(definition_of(table, variant) + "/properties/" + key), param});
  }
  return values;
}

void define_typed_table(const TypedTable& table, Json& definitions) {
  Json choices = Json::array();
  for (const TypedVariant& variant : table.variants) {
    definitions[definition_of(table, variant)] = variant_schema(variant);
    choices.push_back(if_type(variant.type, reference_to(definition_of(table, variant))));
  }
  // Under `dependencies`: an editor leaves out what stands beside an `allOf`.
  definitions[table.kind] = {{"properties", keys_schema(table)}, {"dependencies", {{kType, {{"allOf", std::move(choices)}}}}}};
}

}  // namespace sluice::cli
