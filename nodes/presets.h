#pragma once

#include "engine/contract/registry.h"

namespace sluice::nodes {

/// Adds the presets "openrlhf", "verl", "trl" and "nemo_rl": what these systems do by default, where it differs from ours or is
/// likely to be asked for. docs/conventions.md has them side by side, with what none of our keys expresses. Components come
/// first: what all policy objectives share is set for each that the registry has.
void add_presets(engine::Registry& registry);

}  // namespace sluice::nodes
