#pragma once

#include "base/json/json.h"
#include "engine/contract/state.h"

namespace sluice::engine {

// A node's state as part of a larger document; state_json() is the same as text.

Json json_of(const NodeState& state);

/// Throws UserError when `json` is not what json_of() made.
NodeState state_of(const Json& json);

}  // namespace sluice::engine
