#include "engine/text/node_reference.h"

#include <algorithm>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/contract/model.h"
#include "engine/contract/params/schedule_params.h"
#include "engine/contract/settings.h"

namespace sluice::engine {
namespace {

// "an integer from 1" -> "integer from 1"
std::string kind_text(const ParamInfo& info) {
  std::string text = info.kind == ParamKind::kComponent ? info.component : expectation(info);
  for (const char* article : {"an ", "a "}) {
    if (text.starts_with(article)) return text.substr(std::string_view(article).size());
  }
  return text;
}

std::string kind_with_unit(const ParamInfo& info) { return kind_text(info) + (info.unit.empty() ? "" : " (" + info.unit + ")"); }

std::string default_text(const ParamInfo& info) {
  if (info.required) return "required";
  return info.default_text.empty() ? "not set" : info.default_text;
}

std::string column_text(const ColumnSpec& column) {
  return column.name + " (" + name_of(column.dtype) + " per " + name_of(column.extent) + ")";
}

std::string columns_text(const std::vector<ColumnSpec>& columns) {
  std::vector<std::string> parts;
  for (const ColumnSpec& column : columns) {
    if (!column.name.empty()) parts.push_back(column_text(column));
  }
  return join(parts, ", ");
}

// "score or token_rewards" for each choice that must be made, or the columns that need not be there.
std::string choices_text(const std::vector<ReadsChoice>& choices, bool required) {
  std::vector<std::string> texts;
  for (const ReadsChoice& choice : choices) {
    if (choice.required != required) continue;
    std::vector<std::string> names;
    for (const ColumnSpec& column : choice.columns) names.push_back(columns_text({column}));
    texts.push_back(join(names, " or "));
  }
  return join(texts, ", ");
}

std::string model_text(const ModelNeed& need) {
  return std::string(name_of(need.use)) + " " + need.param + (need.head.empty() ? "" : " (" + need.head + " head)");
}

std::string models_text(const std::vector<ModelNeed>& models) {
  std::vector<std::string> parts;
  for (const ModelNeed& need : models) parts.push_back(model_text(need));
  return join(parts, ", ");
}

std::string scope_text(const NodeNeeds& needs) {
  if (needs.scope == Scope::kMicroBatch) return {};
  return "a barrier over the whole iteration" + (needs.scope_reason.empty() ? std::string() : " (" + needs.scope_reason + ")");
}

std::string sample_value(const ParamInfo& info) {
  if (!info.default_text.empty()) return info.default_text;
  switch (info.kind) {
    case ParamKind::kBoolean:
      return "true";
    case ParamKind::kInteger:
      return std::to_string(
          std::max<int64_t>(1, static_cast<int64_t>(info.minimum.value_or(1)) + (info.minimum_excluded ? 1 : 0)));
    case ParamKind::kReal:
    case ParamKind::kScheduled:
      return "1.0";
    case ParamKind::kReals:
    case ParamKind::kStrings:
    case ParamKind::kTables:
      return "[]";
    case ParamKind::kTable:
      return "{}";
    case ParamKind::kChoice:
      return sluice::quoted(info.choices.front());
    default:
      return "\"...\"";
  }
}

// Required keys to fill in, all others commented out with their defaults.
std::vector<std::string> key_lines(const std::vector<ParamInfo>& params) {
  size_t width = 0;
  for (const ParamInfo& info : params) width = std::max(width, info.name.size() + sample_value(info).size() + 5);
  std::vector<std::string> lines;
  for (const ParamInfo& info : params) {
    std::string line = (info.required ? "" : "# ") + info.name + " = " + sample_value(info);
    if (!info.doc.empty()) line += std::string(width > line.size() ? width - line.size() : 0, ' ') + "  # " + info.doc;
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string toml_block(const NodeType& type) {
  std::vector<std::string> lines{"[nodes." + type.info.type + "]", "type = " + sluice::quoted(type.info.type)};
  if (type.kind != NodeKind::kSource) lines.push_back("inputs = [\"...\"]");
  for (std::string& line : key_lines(type.info.params)) lines.push_back(std::move(line));
  return join(lines, "\n") + "\n";
}

std::string indented(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) out += line.empty() ? "\n" : "  " + line + "\n";
  out.pop_back();
  return out;
}

std::string parameters_text(const std::vector<ParamInfo>& params, const std::string& indent) {
  size_t name = 0, kind = 0, value = 0;
  for (const ParamInfo& info : params) {
    name = std::max(name, info.name.size());
    kind = std::max(kind, kind_with_unit(info).size());
    value = std::max(value, default_text(info).size());
  }
  std::string text;
  for (const ParamInfo& info : params) {
    std::string line = indent + padded(info.name, name) + "  " + padded(kind_with_unit(info), kind) + "  " +
                       padded(default_text(info), value) + "  " + info.doc;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n" + parameters_text(info.children, indent + "  ");
  }
  return text;
}

std::string metrics_text(const std::vector<MetricSpec>& metrics) {
  if (metrics.empty()) return {};
  size_t width = 0;
  for (const MetricSpec& metric : metrics) width = std::max(width, shown_name(metric).size());
  std::string text = "\n  metrics\n";
  for (const MetricSpec& metric : metrics) text += "    " + padded(shown_name(metric), width) + "  " + metric.doc + "\n";
  return text;
}

std::string metrics_markdown(const std::vector<MetricSpec>& metrics) {
  if (metrics.empty()) return {};
  std::string text = "- metrics:\n";
  for (const MetricSpec& metric : metrics) text += "  - `" + shown_name(metric) + "`: " + metric.doc + "\n";
  return text;
}

const char* kind_name_of(NodeKind kind) {
  return kind == NodeKind::kSource ? "source" : kind == NodeKind::kRollout ? "rollout" : "node";
}

/// The facts of a type as (word, text), without empty ones.
std::vector<std::pair<std::string, std::string>> facts_of(const NodeType& type, const Registry& registry) {
  std::vector<std::pair<std::string, std::string>> facts;
  const auto add = [&](const std::string& word, const std::string& text) {
    if (!text.empty()) facts.emplace_back(word, text);
  };
  if (const auto node = checking::with_default_params(type, registry)) {
    add("reads", columns_text(node->needs.reads));
    add("reads, of any type", join(node->needs.reads_any, ", "));
    add("reads one of", choices_text(node->needs.choices, true));
    add("reads if written", choices_text(node->needs.choices, false));
    add("writes", columns_text(node->needs.writes));
    add("models", models_text(node->needs.models));
    add("scope", scope_text(node->needs));
  }
  return facts;
}

// A table cell: `|` would end it.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

void add_parameter_rows(std::string& text, const std::vector<ParamInfo>& params, const std::string& prefix) {
  for (const ParamInfo& info : params) {
    const std::string value = info.required || info.default_text.empty() ? default_text(info) : "`" + info.default_text + "`";
    text +=
        "| `" + prefix + info.name + "` | " + cell(kind_with_unit(info)) + " | " + cell(value) + " | " + cell(info.doc) + " |\n";
    add_parameter_rows(text, info.children, prefix + info.name + ".");
  }
}

std::string parameters_markdown(const std::vector<ParamInfo>& params) {
  if (params.empty()) return {};
  std::string text = "| parameter | value | default | |\n|---|---|---|---|\n";
  add_parameter_rows(text, params, "");
  return text + "\n";
}

std::string node_markdown(const NodeType& type, const Registry& registry) {
  std::string text = "### " + type.info.type + "\n\n" + type.info.summary + "\n\n";
  for (const auto& [word, fact] : facts_of(type, registry)) text += "- " + word + ": " + fact + "\n";
  text += metrics_markdown(type.info.metrics);
  if (text.back() == '\n' && text[text.size() - 2] != '\n') text += "\n";
  return text + parameters_markdown(type.info.params) + "```toml\n" + toml_block(type) + "```\n\n";
}

std::vector<const NodeType*> nodes_of_kind(const Registry& registry, NodeKind kind) {
  std::vector<const NodeType*> types;
  for (const auto& [name, type] : registry.nodes()) {
    if (type.kind == kind) types.push_back(&type);
  }
  return types;
}

std::string section(const Registry& registry, NodeKind kind, const std::string& title) {
  std::string text;
  for (const NodeType* type : nodes_of_kind(registry, kind)) text += node_markdown(*type, registry);
  return text.empty() ? text : "## " + title + "\n\n" + text;
}

std::string components_markdown(const Registry& registry) {
  std::string text, kind;
  for (const auto& [key, type] : registry.components()) {
    if (key.first != kind) text += "## Components of kind `" + key.first + "`\n\n";
    kind = key.first;
    text += "### " + type.type + "\n\n" + type.summary + "\n\n";
    if (!type.metrics.empty()) text += metrics_markdown(type.metrics) + "\n";
    text += parameters_markdown(type.params.infos());
  }
  return text;
}

}  // namespace

std::string describe_text(const NodeType& type, const Registry& registry) {
  std::string text = type.info.type + ": " + type.info.summary + "\n\n";
  const auto facts = facts_of(type, registry);
  size_t width = 6;
  for (const auto& [word, fact] : facts) width = std::max(width, word.size());
  text += "  " + padded("kind", width) + "  " + kind_name_of(type.kind) +
          (type.origin == "builtin" ? "" : ", from " + type.origin) + "\n";
  for (const auto& [word, fact] : facts) text += "  " + padded(word, width) + "  " + fact + "\n";
  if (!type.info.params.empty()) text += "\n  parameters\n" + parameters_text(type.info.params, "    ");
  text += metrics_text(type.info.metrics);
  return text + "\n" + indented(toml_block(type));
}

std::string describe_text(const ComponentType& type) {
  std::string text = type.type + ": " + type.summary + "\n\n  " + padded("kind", 8) + type.kind +
                     (type.origin == "builtin" ? "" : ", from " + type.origin) + "\n";
  const std::vector<ParamInfo> params = type.params.infos();
  if (!params.empty()) text += "\n  parameters\n" + parameters_text(params, "    ");
  return text + metrics_text(type.metrics);
}

std::vector<DescribedTable> described_tables(const Registry& registry) {
  std::vector<DescribedTable> tables;
  for (const SettingsTable& table : settings_tables()) tables.push_back({table.name, table.name, table.params.infos()});
  tables.push_back({"role", "cluster.roles.NAME", role_params().erased().infos()});
  tables.push_back({"device", "devices.\"cuda:0\"", device_params().erased().infos()});
  tables.push_back({"source", "nodes.SOURCE", source_params().erased().infos()});
  tables.push_back({"scheduled", "nodes.NODE.KEY", schedule_table({}).erased().infos()});
  if (registry.model_type() == nullptr) return tables;
  const std::string heading = "models.actor";
  const std::vector<ParamInfo> model = registry.model_type()->params().infos();
  tables.push_back({"model", heading, model});
  for (const ParamInfo& info : model) {
    if (info.kind == ParamKind::kTable) tables.push_back({info.name, heading + "." + info.name, info.children});
  }
  return tables;
}

std::string describe_text(const DescribedTable& table) {
  return table.name + ": the keys of [" + table.heading + "]\n\n  kind  table\n\n  parameters\n" +
         parameters_text(table.params, "    ") + "\n" +
         indented("[" + table.heading + "]\n" + join(key_lines(table.params), "\n") + "\n");
}

std::string reference_markdown(const Registry& registry) {
  return "# Node types\n\n"
         "Generated from the contracts of the node types; `rlhf-run describe TYPE` prints the same. What a node reads and writes "
         "can depend on\n"
         "its parameters: listed is what it does with their defaults.\n\n" +
         section(registry, NodeKind::kSource, "Sources") + section(registry, NodeKind::kRollout, "Rollouts") +
         section(registry, NodeKind::kOrdinary, "Nodes") + components_markdown(registry);
}

}  // namespace sluice::engine
