#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/contract/registry.h"

namespace sluice::engine {

/// What is said of a key that its table does not have.
struct KeyHelp {
  std::string caret;  // after the carets: the key of this table that was probably meant
  std::string help;   // else where such a key stands, or which keys there are
  std::string meant;  // that key of this table; empty: none
};

/// `known`: the keys of the table. `owner`: what the table is called. Tries the names that other systems give a key, then the
/// keys that other tables have, then typing errors.
KeyHelp help_for_unknown_key(const std::string& key, const std::vector<std::string>& known, const std::string& owner,
                             const Registry& registry);

/// Where a key of this name stands, as place_text() has it: of settings, models, node types and components.
std::vector<std::string> places_of_key(std::string_view key, const Registry& registry);

/// Whether there is what `of` of a ForeignKey names, and whether it has `key`.
bool has_key(std::string_view of, std::string_view key, const Registry& registry);

}  // namespace sluice::engine
