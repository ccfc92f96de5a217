#include "tests/dsl/write.h"

#include <algorithm>

#include "base/text/strings.h"

namespace sluice::dsl {
namespace {

std::string key_text(const std::string& key) {
  const auto bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !key.empty() && std::all_of(key.begin(), key.end(), bare) ? key : sluice::quoted(key);
}

std::string value_text(const engine::Value& value);

std::string inline_table(const engine::Table& table) {
  std::vector<std::string> parts;
  for (const engine::Entry& entry : table.entries) parts.push_back(key_text(entry.key) + " = " + value_text(entry.value));
  return parts.empty() ? "{}" : "{ " + join(parts, ", ") + " }";
}

std::string inline_array(const engine::Array& array) {
  std::vector<std::string> parts;
  for (const engine::Value& element : array) parts.push_back(value_text(element));
  return "[" + join(parts, ", ") + "]";
}

std::string value_text(const engine::Value& value) {
  if (const auto* table = std::get_if<engine::Table>(&value.data)) return inline_table(*table);
  if (const auto* array = std::get_if<engine::Array>(&value.data)) return inline_array(*array);
  return engine::toml_text(value);
}

std::string names_text(const std::vector<engine::Name>& names) {
  std::vector<std::string> parts;
  for (const engine::Name& name : names) parts.push_back(sluice::quoted(name.text));
  return "[" + join(parts, ", ") + "]";
}

std::string lines_of(const engine::Table& table) {
  std::string text;
  for (const engine::Entry& entry : table.entries) text += key_text(entry.key) + " = " + value_text(entry.value) + "\n";
  return text;
}

std::string node_lines(const engine::NodeSpec& node) {
  std::string text = "type = " + sluice::quoted(node.type.text) + "\n";
  if (!node.inputs.empty()) text += "inputs = " + names_text(node.inputs) + "\n";
  if (!node.on.text.empty()) text += "on = " + sluice::quoted(node.on.text) + "\n";
  if (!node.metrics_prefix.text.empty()) text += "metrics_prefix = " + sluice::quoted(node.metrics_prefix.text) + "\n";
  return text + lines_of(node.params);
}

}  // namespace

std::string to_toml(const engine::PipelineSpec& spec) {
  std::string text;
  const auto section = [&](const std::string& header, const std::string& lines) {
    text += (text.empty() ? "[" : "\n[") + header + "]\n" + lines;
  };
  const auto settings = [&](const std::string& name, const engine::Table& table) {
    if (!table.empty()) section(name, lines_of(table));
  };
  if (!spec.plugins.empty()) text += "plugins = " + names_text(spec.plugins) + "\n";
  settings("pipeline", spec.pipeline);
  settings("budget", spec.budget);
  settings("schedule", spec.schedule);
  settings("runtime", spec.runtime);
  settings("checkpoint", spec.checkpoint);
  settings("log", spec.log);
  settings("cluster", spec.cluster);
  for (const engine::RoleSpec& role : spec.roles) section("cluster.roles." + key_text(role.name.text), lines_of(role.params));
  for (const engine::DeviceSpec& device : spec.devices) section("devices." + key_text(device.name.text), lines_of(device.params));
  for (const engine::ModelSpec& model : spec.models) section("models." + key_text(model.name.text), lines_of(model.params));
  for (const engine::NodeSpec& node : spec.nodes) section("nodes." + key_text(node.name.text), node_lines(node));
  return text;
}

}  // namespace sluice::dsl
