#pragma once

#include "models/config/config_families.h"

namespace sluice::models {

/// For each layer how many tokens a token sees, itself included, 0 for all; an empty list when that is 0 everywhere. A window
/// that holds the longest sample never closes and counts as 0. Needs layers and max_positions. Throws UserError naming file and
/// key.
std::vector<int64_t> read_windows(const ConfigObject& file, const Family& family, const ModelConfig& config);

}  // namespace sluice::models
