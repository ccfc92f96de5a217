#pragma once

#include <string>
#include <vector>

namespace sluice::models {

/// Whether `pattern` matches the name of a tensor in a file, where a part of one (in brackets) counts as all of it. Patterns are
/// those of a shell over the whole name: `*` any text, dots too, `?` one character, `[0-3]` one of some.
bool matches_name(const std::string& pattern, const std::string& name);
bool matches_any_name(const std::string& pattern, const std::vector<std::string>& names);

/// Throws UserError where it matches none of `names`, with a pattern that does if one is near.
void check_pattern(const std::string& pattern, const std::vector<std::string>& names);

}  // namespace sluice::models
