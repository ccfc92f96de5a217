#pragma once

#include <string>
#include <vector>

#include "engine/contract/registry.h"

namespace sluice::engine {

/// One node type for the terminal: what it is for, its parameters, what it reads and writes (with default parameters), its models
/// and metrics, and a block to paste into a pipeline. The registry is asked for stand-ins of required components.
std::string describe_text(const NodeType& type, const Registry& registry);

/// One component type, such as an objective, for the terminal.
std::string describe_text(const ComponentType& type);

/// A table of a pipeline that describes no node: [budget], [models.NAME], the optimizer of a model.
struct DescribedTable {
  std::string name;     // "budget", "model", "optimizer"
  std::string heading;  // as a pipeline has it: "budget", "models.actor", "models.actor.optimizer"
  std::vector<ParamInfo> params;
};

/// All of them, in the order of a pipeline file: those that every pipeline may have, then those of the registry's models.
std::vector<DescribedTable> described_tables(const Registry& registry);

/// One table for the terminal: its keys, and a block to paste into a pipeline.
std::string describe_text(const DescribedTable& table);

/// Everything that the registry has and the tables of a pipeline, as one JSON object for editors and scripts:
///   {"nodes": [{"type", "kind", "summary", "origin", "parameters": [...], "reads": [column, ...], "writes": [...],
///               "models": [...], "metrics": [{"name", "doc"}]}],
///    "components": [{"kind", "type", "summary", "origin", "parameters"}],
///    "tables": [{"name", "heading", "parameters"}], "presets": [{"name", "summary", "origin"}]}
/// A parameter is {"name", "kind", "value", "required", "default", "doc"} (default: TOML, null where there is none) and, where
/// it has them, "minimum", "maximum", "unit", "choices", "component", "parameters". Reads and writes are those with defaults.
std::string reference_json(const Registry& registry);

/// All node and component types as Markdown: docs/nodes.md.
std::string reference_markdown(const Registry& registry);

}  // namespace sluice::engine
