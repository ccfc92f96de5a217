#include <cmath>

#include "base/json/json.h"
#include "engine/check/check_draft.h"
#include "engine/text/node_reference.h"

// reference_json of node_reference.h.
namespace sluice::engine {
namespace {

const char* name_of(ParamKind kind) {
  switch (kind) {
    case ParamKind::kBoolean:
      return "boolean";
    case ParamKind::kInteger:
      return "integer";
    case ParamKind::kReal:
      return "real";
    case ParamKind::kScheduled:
      return "scheduled";
    case ParamKind::kString:
      return "string";
    case ParamKind::kChoice:
      return "choice";
    case ParamKind::kPath:
      return "path";
    case ParamKind::kPaths:
      return "paths";
    case ParamKind::kReals:
      return "reals";
    case ParamKind::kStrings:
      return "strings";
    case ParamKind::kTable:
      return "table";
    case ParamKind::kTables:
      return "tables";
    case ParamKind::kComponent:
      return "component";
  }
  return "";
}

Json parameters_json(const std::vector<ParamInfo>& params) {
  Json list = Json::array();
  for (const ParamInfo& info : params) {
    Json json{{"name", info.name},
              {"kind", name_of(info.kind)},
              {"value", expectation(info)},
              {"required", info.required},
              {"default", info.required || info.default_text.empty() ? Json() : Json(info.default_text)},
              {"doc", info.doc}};
    if (info.minimum) json["minimum"] = *info.minimum;
    if (info.maximum && std::isfinite(*info.maximum)) json["maximum"] = *info.maximum;
    if (!info.unit.empty()) json["unit"] = info.unit;
    if (!info.choices.empty()) json["choices"] = info.choices;
    if (!info.component.empty()) json["component"] = info.component;
    if (!info.children.empty()) json["parameters"] = parameters_json(info.children);
    list.push_back(std::move(json));
  }
  return list;
}

Json columns_json(const std::vector<ColumnSpec>& columns) {
  Json list = Json::array();
  for (const ColumnSpec& column : columns) {
    if (!column.name.empty())
      list.push_back({{"name", column.name}, {"dtype", name_of(column.dtype)}, {"extent", name_of(column.extent)}});
  }
  return list;
}

Json metrics_json(const std::vector<MetricSpec>& metrics) {
  Json list = Json::array();
  for (const MetricSpec& metric : metrics) list.push_back({{"name", shown_name(metric)}, {"doc", metric.doc}});
  return list;
}

Json node_json(const NodeType& type, const Registry& registry) {
  Json json{{"type", type.info.type},
            {"kind", name_of(type.kind)},
            {"summary", type.info.summary},
            {"origin", type.origin},
            {"parameters", parameters_json(type.info.params)},
            {"reads", Json::array()},
            {"writes", Json::array()},
            {"models", Json::array()},
            {"metrics", metrics_json(type.info.metrics)}};
  const auto node = checking::with_default_params(type, registry);
  if (!node) return json;
  json["reads"] = columns_json(node->needs.reads);
  json["writes"] = columns_json(node->needs.writes);
  for (const ModelNeed& need : node->needs.models)
    json["models"].push_back({{"parameter", need.param}, {"use", name_of(need.use)}, {"head", need.head}});
  return json;
}

}  // namespace

std::string reference_json(const Registry& registry) {
  Json nodes = Json::array(), components = Json::array(), tables = Json::array(), presets = Json::array();
  for (const auto& [name, type] : registry.nodes()) nodes.push_back(node_json(type, registry));
  for (const auto& [key, type] : registry.components()) {
    components.push_back({{"kind", type.kind},
                          {"type", type.type},
                          {"summary", type.summary},
                          {"origin", type.origin},
                          {"parameters", parameters_json(type.params.infos())},
                          {"metrics", metrics_json(type.metrics)}});
  }
  for (const DescribedTable& table : described_tables(registry))
    tables.push_back({{"name", table.name}, {"heading", table.heading}, {"parameters", parameters_json(table.params)}});
  for (const auto& [name, preset] : registry.presets())
    presets.push_back({{"name", name}, {"summary", preset.summary}, {"origin", preset.origin}});
  const Json all{{"nodes", std::move(nodes)},
                 {"components", std::move(components)},
                 {"tables", std::move(tables)},
                 {"presets", std::move(presets)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::engine
