#pragma once

#include "models/config/config_families.h"

namespace sluice::models {

/// Reads the rotary positions into config.rope, and lengthens config.max_positions where a kind of scaling counts from the length
/// before stretching. Needs head_dim and max_positions. Both layouts: rope_theta and rope_scaling at the top (transformers 4), or
/// both in rope_parameters (transformers 5); "type" is the older name of "rope_type", "su" that of "longrope". Throws UserError
/// naming file and key.
void read_rope(const ConfigObject& file, const Family& family, ModelConfig& config);

}  // namespace sluice::models
