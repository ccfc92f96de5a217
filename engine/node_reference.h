#pragma once

#include <string>

#include "engine/registry.h"

namespace sluice::engine {

/// One node type for the terminal: what it is for, its parameters, what it reads and writes (with default parameters), its models
/// and metrics, and a block to paste into a pipeline. The registry is asked for stand-ins of required components.
std::string describe_text(const NodeType& type, const Registry& registry);

/// One component type, such as an objective, for the terminal.
std::string describe_text(const ComponentType& type);

/// All node and component types as Markdown: docs/nodes.md.
std::string reference_markdown(const Registry& registry);

}  // namespace sluice::engine
