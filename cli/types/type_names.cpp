#include "cli/types/type_names.h"

#include "engine/text/node_reference.h"
#include "nodes/advantages/kl_controller.h"

namespace sluice::cli {

std::string full_name(const engine::ComponentType& component) { return component.kind + ":" + component.type; }

std::vector<std::string> described_names(const engine::Registry& registry) {
  std::vector<std::string> names;
  for (const auto& [type, node] : registry.nodes()) names.push_back(type);
  for (const auto& [key, component] : registry.components()) names.push_back(full_name(component));
  for (const auto& [preset, value] : registry.presets()) names.push_back("preset:" + preset);
  for (const engine::DescribedTable& table : engine::described_tables(registry)) {
    names.push_back(table.name);
    names.push_back("table:" + table.name);
  }
  return names;
}

// Every kind of objective is called objective:NAME there.
std::vector<std::string> tried_names(const engine::Registry& registry) {
  std::vector<std::string> names;
  for (const auto& [type, node] : registry.nodes()) names.push_back(type);
  for (const auto& [key, component] : registry.components()) {
    if (key.first == nodes::KlController::kComponent) names.push_back(key.second);
    if (key.first.ends_with("objective")) names.push_back("objective:" + key.second);
  }
  return names;
}

}  // namespace sluice::cli
