#pragma once

#include "engine/contract/registry.h"

namespace sluice::nodes {

/// Adds every builtin node, objective and preset, and the model type to `registry`.
void register_builtin(engine::Registry& registry);

}  // namespace sluice::nodes
