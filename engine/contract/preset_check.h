#pragma once

#include <string>

#include "engine/contract/registry.h"

namespace sluice::engine {

/// The preset of that name. Null and a problem at `where` when there is none, or when one of its values fits no type of the
/// registry.
const Preset* choose_preset(const Registry& registry, const std::string& name, const SourceSpan& where, Problems& problems);

/// What is wrong with a preset by itself: types and keys that the registry does not have, values that they do not take.
Problems preset_problems(const Preset& preset, const Registry& registry);

}  // namespace sluice::engine
