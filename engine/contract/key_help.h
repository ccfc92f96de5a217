#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/contract/registry.h"

namespace sluice::engine {

/// Registry::help_for_unknown_key(). Tries the names that other systems give a key, then the keys that other tables have, then
/// typing errors.
KeyHelp help_for_unknown_key(const std::string& key, const std::vector<std::string>& known, const std::string& owner,
                             const Registry& registry);

/// Where a key of this name stands, as place_text() has it: of settings, models, node types and components.
std::vector<std::string> places_of_key(std::string_view key, const Registry& registry);

/// Whether there is what `of` of a ForeignKey names, and whether it has `key`.
bool has_key(std::string_view of, std::string_view key, const Registry& registry);

}  // namespace sluice::engine
