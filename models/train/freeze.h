#pragma once

#include <string>
#include <vector>

#include "models/layers/weights.h"

namespace sluice::models {

/// True if one of `patterns` matches the name of a tensor in a file (name_patterns.h).
bool is_frozen(const std::string& name, const std::vector<std::string>& patterns);

/// Throws UserError for a pattern that matches none of `names`, with one that does if it is near, and where all names are
/// matched.
void check_freeze(const std::vector<std::string>& names, const std::vector<std::string>& patterns);

/// The weights that `patterns` match need no gradient any more.
void freeze(Weights& weights, const std::vector<std::string>& patterns);

}  // namespace sluice::models
