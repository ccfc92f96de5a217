#pragma once

#include <string>
#include <vector>

#include "engine/contract/registry.h"

namespace sluice::cli {

/// "objective:ppo_clip" names a component, "preset:verl" a preset, "table:budget" a table; "gae" a node type.
std::string full_name(const engine::ComponentType& component);

/// What `describe` takes.
std::vector<std::string> described_names(const engine::Registry& registry);

/// What `try` takes.
std::vector<std::string> tried_names(const engine::Registry& registry);

}  // namespace sluice::cli
