#include "cli/schema/pipeline_schema.h"

#include <string>
#include <vector>

#include "base/text/strings.h"
#include "cli/schema/schema_rules.h"
#include "cli/schema/schema_values.h"
#include "cli/schema/typed_tables.h"
#include "dsl/layers.h"
#include "dsl/shape.h"
#include "engine/contract/model.h"
#include "engine/contract/settings.h"

namespace sluice::cli {
namespace {

using engine::ParamInfo;

constexpr const char* kPresetKey = "preset";  // of [pipeline]

// The characters for which `is_one` holds, as a class of a regular expression: "[-0-9A-Z_a-z]".
template <class IsOne>
std::string character_class(IsOne is_one) {
  std::string text = is_one('-') ? "[-" : "[";
  for (char c = '.'; c < 127; ++c) {
    const char first = c;
    while (is_one(c) && is_one(static_cast<char>(c + 1))) ++c;
    if (!is_one(c)) continue;
    text += first;
    if (c > first) text += std::string("-") + c;
  }
  return text + "]";
}

std::string name_pattern() {
  const std::string first = character_class([](char c) { return dsl::is_name(std::string(1, c)); });
  const std::string later = character_class([](char c) { return dsl::is_name(std::string("a") + c); });
  return "^" + first + later + "*$";
}

std::string device_pattern(const engine::Registry& registry) {
  std::vector<std::string> patterns;
  for (const std::string& name : registry.device_names()) patterns.push_back(name.substr(0, name.find(':')) + ":[0-9]+");
  return "^(" + join(patterns, "|") + ")$";
}

/// Puts the schema together.
class PipelineSchema {
 public:
  explicit PipelineSchema(const engine::Registry& registry)
      : registry_(registry), nodes_(node_table(registry)), components_(component_tables(registry)) {
    if (registry.model_type() != nullptr) model_ = registry.model_type()->params().infos();
  }

  Json make() {
    for (const TypedTable& table : components_) define_component(table);
    define_typed_table(nodes_, definitions_);
    definitions_["model"] = table_schema(model_);
    for (const std::string& name : {nodes_.kind, std::string("model")}) allow_false(definitions_[name]);
    Json properties = top_level();
    const SchemaRules complete(registry_, Rule::kComplete), known(registry_, Rule::kKnown);
    for (const TypedTable& table : components_) {
      for (const SchemaRules* rules : {&complete, &known})
        definitions_[rules->name() + "." + table.kind] = rules->of_component(table);
    }
    definitions_[complete.name()] = complete_file(complete);
    definitions_[known.name()] = known_names(known);
    definitions_["known_unless_plugins"] = {{"if", {{"required", {dsl::plugins_key().name}}}},
                                            {"else", reference_to(known.name())}};
    return {{"$schema", "http://json-schema.org/draft-07/schema#"},
            {"title", "a pipeline file of Sluice"},
            {"description", "made by `rlhf-run schema`"},
            {"type", "object"},
            {"properties", std::move(properties)},
            {"additionalProperties", false},
            {"if", {{"required", {dsl::extends_key().name}}}},
            {"then", reference_to("known_unless_plugins")},
            {"else", {{"allOf", {reference_to(complete.name()), reference_to("known_unless_plugins")}}}},
            {"definitions", std::move(definitions_)}};
  }

 private:
  void define_component(const TypedTable& table) {
    define_typed_table(table, definitions_);
    Json& component = definitions_[table.kind];
    component["type"] = {"string", "object"};
    component["anyOf"] = component["properties"]["type"]["anyOf"];
  }

  // Which removes what is inherited.
  static void allow_false(Json& table) {
    table["type"] = {"object", "boolean"};
    table["not"] = {{"const", true}};
  }

  // Named tables, as [models.NAME].
  static Json named_tables(Json names, Json each) {
    Json tables{{"type", "object"}, {"additionalProperties", std::move(each)}};
    if (!names.empty()) tables["propertyNames"] = std::move(names);
    return tables;
  }

  Json top_level() const {
    const Json names{{"pattern", name_pattern()}};
    Json properties = Json::object();
    properties[dsl::extends_key().name] = name_schema(dsl::extends_key().doc);
    properties[dsl::plugins_key().name] = names_schema(dsl::plugins_key().doc);
    for (const engine::SettingsTable& table : engine::settings_tables())
      properties[table.name] = table_schema(table.params.infos());
    properties["pipeline"]["properties"][kPresetKey]["anyOf"] = offered_names(presets());
    properties["cluster"]["properties"]["roles"] = named_tables(names, table_schema(engine::role_params().erased().infos()));
    properties["devices"] = named_tables(Json::object(), table_schema(engine::device_params().erased().infos()));
    properties["models"] = named_tables(names, reference_to("model"));
    properties["nodes"] = named_tables(names, reference_to(nodes_.kind));
    return properties;
  }

  std::vector<std::pair<std::string, std::string>> presets() const {
    std::vector<std::pair<std::string, std::string>> presets;
    for (const auto& [name, preset] : registry_.presets()) presets.emplace_back(name, preset.summary);
    return presets;
  }

  Json complete_file(const SchemaRules& rules) const {
    Json required = Json::array(), properties = Json::object();
    for (const engine::SettingsTable& table : engine::settings_tables()) {
      Json of_table = rules.of_table(table.params.infos(), table.name);
      if (of_table.contains("required")) required.push_back(table.name);
      if (!of_table.empty()) properties[table.name] = std::move(of_table);
    }
    Json model = rules.of_table(model_, "model");
    model["type"] = "object";
    properties["cluster"]["properties"]["roles"] = {
        {"additionalProperties", rules.of_table(engine::role_params().erased().infos(), "role")}};
    properties["models"] = {{"additionalProperties", std::move(model)}};
    properties["nodes"] = {{"additionalProperties", rules.of_node(nodes_)}};
    return {{"required", std::move(required)}, {"properties", std::move(properties)}};
  }

  Json known_names(const SchemaRules& rules) const {
    Json names = Json::array();
    for (const auto& [name, preset] : registry_.presets()) names.push_back(name);
    return {{"properties",
             {{"pipeline", {{"properties", {{kPresetKey, {{"enum", std::move(names)}}}}}}},
              {"devices", {{"propertyNames", {{"pattern", device_pattern(registry_)}}}}},
              {"nodes", {{"additionalProperties", rules.of_node(nodes_)}}}}}};
  }

  const engine::Registry& registry_;
  TypedTable nodes_;
  std::vector<TypedTable> components_;
  std::vector<ParamInfo> model_;
  Json definitions_ = Json::object();
};

}  // namespace

Json pipeline_schema(const engine::Registry& registry) { return PipelineSchema(registry).make(); }

}  // namespace sluice::cli
