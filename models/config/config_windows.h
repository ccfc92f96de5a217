#pragma once

#include "models/config/config_families.h"

namespace sluice::models {

/// Reads config.windows: for each layer how many tokens a token sees, itself included, 0 for all; an empty list when that is 0
/// everywhere. A window that holds the longest sample never closes and counts as 0. Needs layers and max_positions, and which
/// layers have rotary positions (read_rotary_layers()). Returns which layers have a window, though it may never close. Throws
/// UserError naming file and key.
std::vector<bool> read_windows(const ConfigObject& file, const Family& family, const std::vector<bool>& rotary,
                               ModelConfig& config);

}  // namespace sluice::models
