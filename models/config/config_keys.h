#pragma once

#include "models/config/config_file.h"

namespace sluice::models {

/// Refuses what the readers of config.json have not asked for, unless it is known to change nothing, or says nothing: a key that
/// is read by nobody may be what makes this another model. Throws UserError naming file and key, with the nearest known key.
void refuse_unknown_keys(const ConfigObject& file);

/// Refuses what is known and not supported: some ways to quantise weights, code of its own, encoders.
void refuse_unsupported(const ConfigObject& file, const std::string& model_type);

}  // namespace sluice::models
