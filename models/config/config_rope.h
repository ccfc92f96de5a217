#pragma once

#include <cstdint>
#include <vector>

#include "models/config/config_families.h"

namespace sluice::models {

/// Reads the rotary positions into config.rope, and lengthens config.max_positions where a kind of scaling counts from the length
/// before stretching. Needs head_dim and max_positions. Both layouts: rope_theta and rope_scaling at the top (transformers 4), or
/// both in rope_parameters (transformers 5); "type" is the older name of "rope_type", "su" that of "longrope". Throws UserError
/// naming file and key.
///
/// Where layers with a window have rotary positions of their own, these become config.more_ropes[0]: transformers 5 has an
/// object for each of both kinds of layers, and what stands at the top stretches those without a window alone.
void read_rope(const ConfigObject& file, const Family& family, ModelConfig& config);

/// [layers]: which of them have rotary positions at all. Throws UserError naming file and key.
std::vector<bool> read_rotary_layers(const ConfigObject& file, const Family& family, int64_t layers);

/// ModelConfig::rope_of_layer of layers with rotary positions or without, with a window or without; empty when all are alike.
std::vector<int64_t> ropes_of_layers(const Family& family, const std::vector<bool>& rotary, const std::vector<bool>& sliding);

}  // namespace sluice::models
